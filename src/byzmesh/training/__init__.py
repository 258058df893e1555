"""Shared by simulator and peers: the local part of a round, schedules, metrics, checkpoint files."""
