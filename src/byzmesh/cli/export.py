"""`byzmesh export`: a model of a stored run as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from byzmesh.cli._options import STORE, Key, StorePath

ORDER = 40


def command(
    key: Key,
    to: Annotated[Path, typer.Option(help="File to write: .safetensors, or .pt (a state_dict).", show_default=False)],
    store: StorePath = STORE,
    worker: Annotated[
        int | None, typer.Option(help="Id of an honest worker (default: the mean of all honest models).")
    ] = None,
    round: Annotated[
        int | None, typer.Option(help="An evaluation whose models were kept (default: the last round).")
    ] = None,
) -> None:
    """Write a model of a stored run, finished or still being computed, to a file.

    Example: byzmesh export 3fa8 --store runs.db --worker 3 --to model.safetensors
    """
    from byzmesh.store import open_store
    from byzmesh.sweeps.export import export_model

    with open_store(store, readonly=True) as opened:
        done = export_model(opened, key, to, worker, round)
    typer.echo(f"{done.path}: {done.whose}, {done.parameters} parameters, round {done.round} ({done.status})")
