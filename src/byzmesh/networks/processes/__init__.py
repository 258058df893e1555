"""Networks that change from round to round: links that fail, workers that sleep, neighbours drawn at random."""

from byzmesh.networks.processes.base import Meeting, Meetings, Process, process, processes

__all__ = ["Meeting", "Meetings", "Process", "process", "processes"]
