"""The network with its links by trust, and who stands out: for stored runs and for peers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from byzmesh.networks import Network
from byzmesh.networks.drawing import positions
from byzmesh.theory.forensics import LEAST_ROUNDS, MEASURED, OFTEN, SELDOM, find_suspects
from byzmesh.types import Integers

MOST_NODES = 300
WORDS = {
    "named": "named: cut in at least {often:.0%} of their messages, and everybody else in less than {seldom:.0%}",
    "nobody": "nobody stands out: everybody is cut in less than {seldom:.0%} of the messages",
    "cannot tell": "the record cannot tell: some are cut often, but not clearly enough, or there are fewer than "
    "{least} rounds",
}


def network_view(network: Network, edges: Integers, title: str, known: bool = True) -> dict[str, Any] | None:
    """Places, links with their trust, liars; None if the network is too large to draw.

    edges  (E, 4) sender, receiver, cut, rounds
    known  whether it is known who lies
    """
    if network.n > MOST_NODES:
        return None
    spots = positions(network)
    low, high = spots.min(axis=0), spots.max(axis=0)
    scaled = (spots - (low + high) / 2.0) / max(float((high - low).max()), 1e-9) + 0.5
    kept = {(int(s), int(r)): 1.0 - cut / max(came, 1) for s, r, cut, came in edges.tolist()}
    links = []
    for a, b in network.links.both_ways().tolist():
        ways = [kept[way] for way in ((a, b), (b, a)) if way in kept]
        links.append([a, b, round(min(ways), 3) if ways else None])
    return {
        "title": title,
        "places": [[round(x, 4), round(1.0 - y, 4)] for x, y in scaled.tolist()],
        "names": [network.label(node) for node in range(network.n)],
        "links": links,
        "liars": network.byzantine.tolist() if known else [],
    }


def suspects_view(network: Network, edges: Integers, liars: Iterable[int] | None) -> dict[str, Any] | None:
    """Verdict, how often each worker was cut, and how far such verdicts can be trusted; None without messages."""
    came = edges[edges[:, 3] > 0] if len(edges) else edges
    if not len(came):
        return None
    found = find_suspects(came[:, 0], came[:, 1], came[:, 2], came[:, 3], liars)
    rows = [
        {
            "worker": network.label(each.sender),
            "rate": round(each.rate, 4),
            "named": each.sender in found.named,
            "lies": each.lies,
        }
        for each in sorted(found.network, key=lambda each: -each.rate)
    ]
    return {
        "verdict": found.verdict,
        "words": WORDS[found.verdict].format(often=OFTEN, seldom=SELDOM, least=LEAST_ROUNDS),
        "confidence": f"How often such a verdict is right: {MEASURED}.",
        "rows": rows,
    }


def no_edges() -> Integers:
    """No messages at all."""
    return np.zeros((0, 4), np.int64)
