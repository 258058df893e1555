"""Drills: all peers of a network as processes on this machine, with liars and faults."""
