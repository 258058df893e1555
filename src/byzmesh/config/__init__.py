"""Configs: what a user writes, and its canonical form. A grid is one file that describes many runs."""
