"""What simulator and peers share: schedules, local updates, metrics, checkpoint files."""

from byzmesh.training.checkpoint import load_checkpoint, save_checkpoint
from byzmesh.training.local import LocalUpdate, local_update
from byzmesh.training.metrics import consensus_error, disagreement, spread, summarise
from byzmesh.training.schedules import Schedule, schedule, schedules

__all__ = [
    "LocalUpdate",
    "Schedule",
    "consensus_error",
    "disagreement",
    "load_checkpoint",
    "local_update",
    "save_checkpoint",
    "schedule",
    "schedules",
    "spread",
    "summarise",
]
