"""`byzmesh peer`: one peer as a process of its own."""

from __future__ import annotations

import gc
import signal
from pathlib import Path
from typing import Any

from byzmesh.peers.identity import Keyring
from byzmesh.peers.logs import json_log, warnings_in
from byzmesh.peers.membership import Removed
from byzmesh.peers.network_file import load_network
from byzmesh.peers.node import Node
from byzmesh.peers.share import bind_share
from byzmesh.peers.warm import warm
from byzmesh.peers.working_set import give_back_mapped_files, seldom


def run_peer(
    network: str | Path,
    me: int,
    key: str | Path,
    *,
    out: str | Path,
    data: str | Path | None = None,
    metrics_port: int | None = None,
    start_from: str | Path | None = None,
    run: str = "",
) -> None:
    """Run a peer of a network file in this process until the last round; SIGTERM or SIGINT end it after the round."""
    log = json_log(me)
    with warnings_in(log):
        file = load_network(network)
        task = bind_share(file, me, data)
        warm(file, *task)
        try:
            node = Node(
                file,
                me,
                Keyring(key),
                out=out,
                path=network,
                data=data,
                task=task,
                metrics_port=metrics_port,
                start_from=start_from,
                run=run,
                log=log,
            )
        except Removed as error:  # before it was started
            log("removed", text=str(error))
            return

        node.evaluated = seldom(give_back_mapped_files)

        def leave(number: int, frame: Any) -> None:
            node.stop = True

        former = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGINT)}
        gc.freeze()  # what is there now stays with this process: the collector need not look at it in every round
        try:
            node.run()
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)
