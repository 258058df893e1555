"""Robust aggregation rules: what a worker makes of its own model and what it received.

This file imports nothing, so that `import byzmesh` stays fast: see `api` (one receiver), `base` (the records) and
`gram` (how to write a rule).
"""
