"""The auditor: the worst that liars can do to a rule, searched."""
