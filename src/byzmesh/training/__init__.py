"""What simulator and peers share: schedules, local updates, variance reduction, metrics, checkpoint files."""

from byzmesh.training.checkpoint import load_checkpoint, save_checkpoint
from byzmesh.training.local import LocalUpdate, local_update
from byzmesh.training.metrics import consensus_error, disagreement, spread, summarise
from byzmesh.training.schedules import Schedule, schedule
from byzmesh.training.variance import Estimator, estimator

__all__ = [
    "Estimator",
    "LocalUpdate",
    "Schedule",
    "consensus_error",
    "disagreement",
    "estimator",
    "load_checkpoint",
    "local_update",
    "save_checkpoint",
    "schedule",
    "spread",
    "summarise",
]
