"""Network files on loopback for tests, with their keys."""

from __future__ import annotations

import itertools
import os
import socket
import sys
from pathlib import Path
from typing import Any

from byzmesh.peers.identity import keygen
from byzmesh.peers.network_file import NetworkFile, network_file, save_network

_FIRST, _SPAN = 20_000, 1_500
"""Each worker of pytest-xdist has a range of its own, below the ports that the system gives to outgoing connections:
those of peers that have started already would otherwise take the port of one that has not. Another run of the tests on
this machine has the same ranges: `_claimed` keeps both from taking one port."""
_start = _FIRST + _SPAN * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
_candidates = itertools.cycle(_start + (os.getpid() * 37 + place) % _SPAN for place in range(_SPAN))


LONG = 600.0
"""Seconds after which a test with real processes gives up. Each waits for a condition, which comes in a few seconds on
an idle machine; how long it takes is no part of any test."""


_claims: dict[int, socket.socket] = {}


def _claimed(port: int) -> bool:
    """Whether this process may use a port until it ends: it takes a name of the port that every other run of the tests
    tries first. Between a look and its use, nobody else takes the port then."""
    if port in _claims or sys.platform != "linux":  # elsewhere no name goes with its process, and there is no claim
        return True
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0port {port} of byzmesh")
    except OSError:
        claim.close()
        return False
    _claims[port] = claim
    return True


def free_ports(count: int) -> list[int]:
    """Ports that nobody uses now, nor will before this process ends."""
    ports: list[int] = []
    for port in itertools.islice(_candidates, _SPAN):
        if not _claimed(port):
            continue
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise AssertionError(f"fewer than {count} free ports")


def port_block(count: int) -> int:
    """The first of `count` ports in a row that nobody uses now."""
    for first in free_ports(50):
        try:
            for port in range(first, first + count):
                with socket.socket() as one:
                    one.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            continue
        return first
    raise AssertionError(f"no {count} free ports in a row")


def make_network(folder: Path, peers: int, *, real: bool = False, **content: Any) -> NetworkFile:
    """Keys and network.yaml in `folder`. Only real peers have addresses at which one can listen."""
    where = [f"127.0.0.1:{port}" for port in free_ports(peers)] if real else [f"{i}.invalid:7000" for i in range(peers)]
    public = keygen(folder, peers)
    shares = content.pop("share", {})
    entries = [
        {"id": peer, "address": address, "public_key": public[peer]}
        | ({"share": shares[peer]} if peer in shares else {})
        for peer, address in enumerate(where)
    ]
    file = network_file({"peers": entries, **content}, folder)
    save_network(file, folder / "network.yaml")
    return file


def two_castle(folder: Path, **content: Any) -> NetworkFile:
    """Twelve peers on the two-castle graph; the data are shared out among ten, as if 7 and 9 might lie."""
    share = {peer: place for place, peer in enumerate(p for p in range(12) if p not in (7, 9))} | {7: 0, 9: 1}
    usual = {
        "topology": {"name": "two-castle", "k": 6},
        "rule": {"name": "ios"},
        "f": 2,
        "problem": {"name": "softmax", "partition": "one-class"},
        "step": {"name": "inverse-sqrt", "a": 0.9, "b": 1},
        "local": {"decay": 0.01},
        "shares": 10,
        "share": share,
        "evaluate_every": 50,
    }
    return make_network(folder, 12, **{**usual, **content})


def four(folder: Path, **more: Any) -> NetworkFile:
    """Four peers, each linked to all, with a small problem and little patience."""
    usual: dict[str, Any] = {
        "topology": {"name": "complete", "n": 4},
        "rule": "ios",
        "f": 1,
        "problem": {"name": "quadratic", "dimension": 5, "targets": "normal"},
        "rounds": 200,
        "evaluate_every": 100,
        "checkpoint_seconds": 0.1,
        "timeouts": {"round": 0.2, "start": 1.0, "start_grace": 0.05},
    }
    return make_network(folder, 4, **{**usual, **more})


def real_six(folder: Path, samples: Path, **more: Any) -> NetworkFile:
    """Six real peers, each linked to all, on a small data set shared out among the first five: the last may lie."""
    usual: dict[str, Any] = {
        "topology": {"name": "complete", "n": 6},
        "rule": "ios",
        "f": 1,
        "problem": {"name": "softmax", "dataset": str(samples), "batch": 8},
        "shares": 5,
        "share": {peer: peer % 5 for peer in range(6)},
    }
    return make_network(folder, 6, real=True, **{**usual, **more})
