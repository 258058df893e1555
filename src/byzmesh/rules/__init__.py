"""Robust aggregation rules: how a worker combines its own model with what it received.

This file imports nothing, so that `import byzmesh` stays fast: see `aggregate` (one receiver), `base` (the records) and
`gram` (how to write a rule).
"""
