"""Configs, grids and runners: from what a user writes to runs in a store."""
