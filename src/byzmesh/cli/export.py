"""`byzmesh export`: a model of a stored run, or of a peer, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from byzmesh.cli._options import STORE, StorePath
from byzmesh.errors import ConfigError

ORDER = 40


def command(
    key: Annotated[
        str, typer.Argument(help="Key of a run, or a unique beginning; or the --out of a peer.", show_default=False)
    ],
    to: Annotated[Path, typer.Option(help="File to write: .safetensors, or .pt (a state_dict).", show_default=False)],
    store: StorePath = STORE,
    worker: Annotated[
        int | None, typer.Option(help="Id of an honest worker or a peer (default: the mean of all honest models).")
    ] = None,
    round: Annotated[
        int | None, typer.Option(help="An evaluation whose models were kept (default: the last round).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Write a model of a stored run, finished or still being computed, or of a peer's last checkpoint, to a file.

    Example: byzmesh export 3fa8 --store runs.db --worker 3 --to model.safetensors
    Example: byzmesh export /var/lib/byzmesh --worker 3 --to model.safetensors
    """
    if to.exists() and not force:
        raise ConfigError(f"{to} exists; give another --to, or --force")
    if Path(key).is_dir():
        export_peer(Path(key), worker, to)
        return
    from byzmesh.store import open_store
    from byzmesh.sweeps.export import export_model

    with open_store(store, readonly=True) as opened:
        done = export_model(opened, key, to, worker, round)
    typer.echo(f"{done.path}: {done.whose}, {done.parameters} parameters, round {done.round} ({done.status})")


def export_peer(folder: Path, worker: int | None, to: Path) -> None:
    """Write the model of a peer's newest checkpoint; the peer may be running."""
    from byzmesh.files import write
    from byzmesh.peers.export import peer_model
    from byzmesh.sweeps.export import check_ending, model_content

    check_ending(to)
    task, vector, peer, number = peer_model(folder, worker)
    write(to, model_content(task, vector, to.suffix, {"whose": f"peer {peer}", "round": str(number)}), option="--to")
    typer.echo(f"{to}: peer {peer}, {vector.size} parameters, round {number}")
