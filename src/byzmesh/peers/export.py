"""The model in a peer's folder, while the peer runs or after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError, DataError
from byzmesh.peers.folder import newest_checkpoint
from byzmesh.problems import Task, problems


def peer_model(folder: str | Path, peer: int | None = None) -> tuple[Task, np.ndarray[Any, Any], int, int]:
    """(task, model (D,), peer, round) of the newest checkpoint in a folder; `peer` may be left out if there is one.

    Nothing is locked: checkpoints are replaced as a whole, so a reader sees the old one or the new one. If the newest
    is damaged, it is the one before.
    """
    folder = Path(folder)
    numbers = (path.name.removeprefix("peer").split(".")[0] for path in folder.glob("peer*.ckpt"))
    found = sorted({int(number) for number in numbers if number.isdigit()})
    if not found:
        raise ConfigError(f"{folder} contains no checkpoint of a peer; give the --out of one that has run for a while")
    if peer is None and len(found) > 1:
        raise ConfigError(f"{folder} has checkpoints of peers {', '.join(map(str, found))}; choose by --worker")
    chosen = found[0] if peer is None else peer
    if chosen not in found:
        raise ConfigError(f"{folder} has no checkpoint of peer {chosen}; there are {', '.join(map(str, found))}")
    read = newest_checkpoint(folder, chosen, lambda path, error: None)
    arrays, metadata = read or ({}, {})
    if "bound" not in metadata:
        raise DataError(f"the checkpoint of peer {chosen} is of an older version; let its peer write a new one")
    bound = metadata["bound"]
    problem = problems.build(bound.pop("problem"))
    return problem.bind(**bound), arrays["model"][0], chosen, int(metadata["round"])
