"""The arena: rules against attacks, and which rule loses least."""
