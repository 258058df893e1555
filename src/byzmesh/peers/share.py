"""A peer's part of the data: the problem of the network file, bound to all shares, and the row of one peer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from byzmesh.config.paths import anchor_problem
from byzmesh.errors import PeerError
from byzmesh.peers.network_file import NetworkFile
from byzmesh.problems import Task, problems


def bound_problem(file: NetworkFile, me: int, data: str | Path | None = None) -> tuple[dict[str, Any], int]:
    """How to bind the problem (see `bind`), and the row that belongs to peer `me`.

    data  a folder with the problem's data set, or a .npz or .csv file with this peer's own samples
    """
    shares, row = file.parts, file.share(me)
    changes: dict[str, Any] = {}
    if data is not None:
        if "dataset" not in file.made_problem.options:
            raise PeerError(f"--data: problem {file.made_problem.name} has no data set; leave the option out")
        if Path(data).is_dir():
            changes = {"data_dir": str(Path(data).absolute())}
        else:
            # the whole file belongs to this peer: nothing to split
            changes = {"dataset": str(Path(data).absolute()), "partition": "iid"}
            shares, row = 1, 0
    problem = anchor_problem({**file.problem, **changes}, file.folder)
    options = {"workers": shares, "seed": file.seed, "dtype": file.dtype, "threads": file.threads}
    return {"problem": problem, **options}, row


def bind_share(file: NetworkFile, me: int, data: str | Path | None = None) -> tuple[Task, int]:
    """The task and the row in it that belongs to peer `me`."""
    bound, row = bound_problem(file, me, data)
    return problems.build(bound.pop("problem")).bind(**bound), row
