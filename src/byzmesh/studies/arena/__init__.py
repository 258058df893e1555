"""The arena: runs rules against attacks and ranks the rules."""
