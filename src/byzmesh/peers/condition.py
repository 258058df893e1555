"""How a node is doing: the numbers of its metrics page, and what is wrong with it, if anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from byzmesh.peers.metrics_page import Number

if TYPE_CHECKING:
    from byzmesh.peers.node import Node

VERDICTS = {
    "current": "messages that came in their round",
    "early": "messages that came before their round",
    "late": "messages that came after their round and counted in a later one",
    "repeated": "messages that counted already",
    "silent": "rounds without a message",
}


def numbers(node: Node) -> Iterator[Number]:
    """What the metrics page shows."""
    peer, rounds, now = node.peer, node.peer.rounds, node.world.now()
    heard = {j: now - rounds.heard.get(j, node.began) for j in peer.neighbours}
    yield Number("round", "the next round", peer.round)
    for name, value in node.latest.items():
        yield Number(name, "of the last evaluation", value)
    yield Number("usual_round_seconds", "the usual round: one over this is rounds per second", rounds.usual)
    yield Number("grace_seconds", "wait for the rest after enough neighbours answered", rounds.grace)
    yield Number("waited_seconds", "time spent waiting for messages", peer.listened, total=True)
    yield Number("moved_up", "times it moved up to a later round to catch up", peer.jumps, total=True)
    yield Number("kept_own", "rounds in which the rule kept the peer's own model", peer.tally.kept, total=True)
    yield Number("strangers_refused", "handshakes refused", peer.transport.strangers, total=True)
    yield Number("guarding", "whether handshakes are answered", peer.transport.guarding)
    yield Number("checkpoint_written", "whether the last checkpoint is on disk", node.folder.written)
    linked = set(peer.transport.linked)
    yield Number("connected", "whether the link that hears a neighbour is open", {j: j in linked for j in heard})
    yield Number("neighbour_up", "whether a neighbour was heard lately", {j: j not in peer.lost for j in heard})
    yield Number("last_heard_seconds", "since a neighbour was last heard", heard)
    for name, text in VERDICTS.items():
        counts = {j: counter[name] for j, counter in rounds.verdicts.items()}
        yield Number(f"messages_{name}", text, counts, total=True)
    yield Number(
        "messages_refused", "malformed messages", {j: c.total() for j, c in peer.tally.refused.items()}, total=True
    )
    lost = {j: peer.parts.incomplete[j] for j in peer.neighbours}
    yield Number("messages_incomplete", "long messages given up for a lost part", lost, total=True)
    ignored = dict(zip(peer.neighbours, peer.tally.ignored.tolist()))
    yield Number("rounds_ignored", "rounds in which the rule gave a message no weight", ignored, total=True)
    yield Number("cut_off", "whether a neighbour is cut off", {j: j in peer.cut_off for j in peer.neighbours})
    yield Number("suspect", "whether a neighbour is suspected", {j: j in peer.suspects for j in peer.neighbours})


def trouble(node: Node) -> str | None:
    """What is wrong, in words; None if nothing is."""
    peer, times, now = node.peer, node.file.timeouts, node.world.now()
    if now - node.ended >= max(times.start, 3.0 * times.round, 3.0 * peer.rounds.usual):
        return f"no round ended for {now - node.ended:.0f} s"
    if not peer.transport.guarding:
        return "nobody answers handshakes: the guard ended; restart the peer"
    up = len(peer.neighbours) - len(peer.lost)
    if peer.neighbours and up <= min(peer.f, len(peer.neighbours) - 1):
        return f"hears {up} of {len(peer.neighbours)} neighbours, of which {peer.f} may lie"
    if not node.folder.written:
        return f"the last checkpoint could not be written to {node.folder.path}"
    return None
