"""`byzmesh peer`: one peer of a network, in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ORDER = 160


def command(
    network: Annotated[Path, typer.Argument(help="Network file.", show_default=False)],
    id: Annotated[int, typer.Option("--id", help="This peer's id in the network file.", show_default=False)],
    key: Annotated[Path, typer.Option(help="This peer's key file.", show_default=False)],
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data set, or a file with this peer's samples.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for checkpoint and results.")] = Path("peer-out"),
    start_from: Annotated[
        Path | None, typer.Option(help="Checkpoint of a peer of another run, whose model to start from.")
    ] = None,
    run: Annotated[
        str, typer.Option(help="Name of this run of the file; peers that were given another one are not heard.")
    ] = "",
    metrics: Annotated[int | None, typer.Option(help="Port for /metrics and /health on loopback.")] = None,
) -> None:
    """Train with the neighbours in the network file. Logs are JSON lines on stderr; SIGTERM ends after the round.

    Exit code 2: a mistake in a file or option, 3: a defect, with its traceback, 4: no neighbour was heard for long,
    5: the state is not on disk.

    Example: byzmesh peer network.yaml --id 3 --key keys/peer3.key --out runs/peers
    """
    from byzmesh.peers.run_peer import run_peer

    run_peer(network, id, key, data=data, out=out, metrics_port=metrics, start_from=start_from, run=run)
