"""Flower's own commands as real processes on loopback: flower_processes.py APP FOLDER CLIENTS [KEY=VALUE ...]

A SuperLink, CLIENTS SuperNodes (node 0 lies) and `flwr run`, with all the processes that these start for themselves:
flower-superexec, flwr-serverapp, and a flwr-clientapp per message. Each imports Flower for a second, so all are forked
from this process, which has imported it: instead of starting a program, Flower's processes write its command line to a
pipe, and this process forks.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.integrations.server import ServerRule

PROGRAMS = {entry.name: entry for entry in entry_points(group="console_scripts") if entry.value.startswith("flwr.")}


def launch(words: list[str], output: Path) -> int:
    """Fork a process that runs one of Flower's programs."""
    if pid := os.fork():
        return pid
    try:
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 1)
        os.dup2(1, 2)
        sys.argv = words
        PROGRAMS[words[0]].load()()
    finally:
        os._exit(0)


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody uses."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def answers(address: str) -> bool:
    """Whether somebody listens there."""
    host, port = address.split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def main(app: Path, folder: Path, clients: int, settings: list[str]) -> None:
    """Run the app to its end; Flower's output is in FOLDER/log."""
    for program in PROGRAMS.values():
        if "simulation" not in program.name:
            program.load()
    ServerRule("ios")(np.zeros(3), np.zeros((clients, 3)))
    reading, writing = os.pipe()

    def to_launcher(words: list[str], *_: Any, **__: Any) -> None:
        os.write(writing, json.dumps(words).encode() + b"\n")

    subprocess.Popen = to_launcher  # type: ignore[assignment, misc]
    log = folder / "log"
    control, fleet, serverapp, *nodes = (f"127.0.0.1:{port}" for port in free_ports(3 + clients))
    link = ["--control-api-address", control, "--fleet-api-address", fleet, "--serverappio-api-address", serverapp]
    launch(["flower-superlink", "--insecure", *link], log)
    for number, address in enumerate(nodes):
        config = f"partition-id={number} liar={'true' if number == 0 else 'false'}"
        node = ["--superlink", fleet, "--clientappio-api-address", address, "--node-config", config]
        launch(["flower-supernode", "--insecure", *node], log)
    while not answers(control):
        select.select([reading], [], [], 0.1)
    override = [word for setting in settings for word in ("--run-config", setting)]
    launch(["flwr", "run", str(app), "local-deployment", "--federation-config", f'address="{control}"', *override], log)
    with os.fdopen(reading) as asked:
        for line in asked:
            launch(json.loads(line), log)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
