"""The version, and the revision of the results, in one place."""

__version__ = "0.1.0"
REVISION = 1
"""Goes up when all runs give other results than before, so that stored runs are not taken for today's. If only one
rule, attack, problem, ... gives other results, that part's own revision goes up instead."""
