"""`byzmesh watch`: a sweep or peers, live in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from byzmesh.errors import ConfigError

ORDER = 75


def command(
    store: Annotated[Path | None, typer.Option("--store", help="Watch the runs of this store.")] = None,
    peers: Annotated[Path | None, typer.Option("--peers", help="Watch the peers of this network file.")] = None,
    out: Annotated[
        list[Path] | None,
        typer.Option("--out", help="Folder with the peers' state; repeatable (default: that of the network file)."),
    ] = None,
    metrics: Annotated[
        int | None, typer.Option(help="Port of peer 0's --metrics; peer i is asked at this port + i on this machine.")
    ] = None,
    port: Annotated[int, typer.Option(help="Port of the page; 0: any that is free.")] = 8700,
    host: Annotated[str, typer.Option(help="Address to listen at; the page has no password.")] = "127.0.0.1",
) -> None:
    """Serve a page that shows a sweep or peers as they go: progress, curves, trust, suspects. Ctrl-C ends it.

    Example: byzmesh watch --store runs.db
    """
    import contextlib
    import threading

    from byzmesh.watch.peers import Peers
    from byzmesh.watch.server import LOOPBACK, Source, Watch
    from byzmesh.watch.stored import StoredRuns

    if (store is None) == (peers is None):
        raise ConfigError("give --store runs.db to watch runs, or --peers network.yaml to watch peers: one of the two")
    if store is not None and (out or metrics is not None):
        raise ConfigError("--out and --metrics are about peers; leave them out with --store")
    source: Source = StoredRuns(store) if store is not None else Peers(peers or "", out or (), metrics)
    if host not in LOOPBACK:
        typer.echo(f"note: everybody who can reach {host}:{port} can read the page; it has no password", err=True)
    with Watch(source, host, port) as watch:
        typer.echo(f"{watch.url}  (Ctrl-C ends it)")
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
