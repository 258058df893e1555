"""The version, and the revision of the results, in one place."""

__version__ = "0.1.0"
REVISION = 1
"""Goes up when runs give other results than before whatever their parts are; stored runs then are not taken for those
of today. What changes the results of one rule, attack, problem, ... is that part's own revision instead."""
