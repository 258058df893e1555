"""`byzmesh export`: a model of a run as a file for PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ORDER = 40


def command(
    out: Annotated[Path, typer.Argument(help="Folder that byzmesh run --out wrote.", show_default=False)],
    to: Annotated[Path, typer.Option(help="File to write: .safetensors, or .pt (a state_dict).", show_default=False)],
    worker: Annotated[
        int | None, typer.Option(help="Id of an honest worker (default: the mean of all honest models).")
    ] = None,
) -> None:
    """Write a worker's model, of a finished run or one that was stopped, as safetensors or as a state_dict.

    Example: byzmesh export runs/krum --worker 3 --to model.safetensors
    """
    from byzmesh.sweeps.export import export

    done = export(out, to, worker)
    typer.echo(f"{done.path}: {done.whose}, {done.parameters} parameters, round {done.round} ({done.status})")
