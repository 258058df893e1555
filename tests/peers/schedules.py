"""Seeded schedules of faults for a virtual network of real nodes: played, checked after every event, shrunk.

A schedule is a list of faults, so that one that fails can be made shorter and kept (kept_schedules.json).
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.peers.identity import load_keys
from byzmesh.peers.network_file import NetworkFile
from byzmesh.peers.virtual import VirtualWorld
from byzmesh.peers.wire import EVERYONE, Format
from tests.peers.networks import make_network
from tests.peers.worlds import Nodes

Fault = list[Any]
"""[kind, begin, seconds, peer or peers]: kill, partition, loss, slow links, reorder."""
HONEST, LIAR, END = range(5), 5, 5.0
KEPT = Path(__file__).with_name("kept_schedules.json")


def drawn(seed: int) -> list[Fault]:
    """A schedule of up to six faults within five seconds."""
    draw = random.Random(seed)
    faults: list[Fault] = []
    for _ in range(draw.randint(2, 6)):
        kind = draw.choice(["kill", "kill", "partition", "loss", "slow", "reorder"])
        whom = sorted(draw.sample(HONEST, 1 if kind == "kill" else 2))
        faults.append([kind, round(draw.uniform(0.0, END), 3), round(draw.uniform(0.1, 2.0), 3), whom])
    return sorted(faults, key=lambda fault: fault[1])


def network(folder: Path) -> NetworkFile:
    return make_network(
        folder,
        6,
        topology={"name": "complete", "n": 6},
        rule="ios",
        f=1,
        problem={"name": "quadratic", "dimension": 4, "targets": "normal"},
        rounds=100_000,
        evaluate_every=100_000,
        checkpoint_seconds=0.3,
        timeouts={"round": 1.0, "start": 2.0, "grace": 0.005, "start_grace": 0.2, "linger": 0.1},
    )


def liar(world: VirtualWorld, file: NetworkFile, folder: Path, seed: int) -> Callable[[], None]:
    """Sends whatever comes to its mind: lies of any round, replays, garbage, floods; joins under any name."""
    draw = random.Random(seed)
    form = Format(file.run, 4, file.dtype)
    to_all = struct.pack("<H", EVERYONE)

    def work() -> None:
        transport = world.open(LIAR, "", load_keys(folder / f"peer{LIAR}.key"), file.remotes(LIAR), form.size, print)
        newest = 0
        while True:
            for sender, data in transport.receive(draw.choice([0.001, 0.02, 0.3]))[0]:
                newest = max(newest, form.decode(data, sender).round)
            number = max(0, newest + draw.choice([-1, 0, 0, 0, 1, 1, 2, 3, 1000, 1 << 62]))
            vector = np.array([draw.uniform(-1e6, 1e6) for _ in range(4)])
            lie = bytes(form.encode(vector, LIAR, number, draw.choice([EVERYONE, *HONEST])))
            kind = draw.random()
            if kind < 0.05:
                lie = to_all + draw.randbytes(form.size - 2)
            elif kind < 0.08:
                lie = lie[:-3]
            for _ in range(300 if kind > 0.998 else 1):
                transport.send(lie)

    return work


class Watch:
    """The invariants."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.reached = dict.fromkeys(HONEST, 0)
        self.frontier = 0

    def __call__(self) -> None:
        nodes = self.nodes
        for me, node in nodes.latest.items():
            peer = node.peer
            if peer.round > self.reached[me] + 1:
                # it moved up to a round that somebody honest has reached, and may have ended it at once
                assert peer.round <= self.frontier + 1, f"{me} was dragged to {peer.round}, nobody honest was there"
            self.reached[me] = peer.round
            assert not peer.cut_off.times.keys() - {LIAR}, f"{me} cut off {peer.cut_off.times}"
            for other in peer.neighbours:
                if other != LIAR:
                    assert not peer.tally.refused[other], f"{me} refused {other}: {peer.tally.refused[other]}"
                assert len(peer.rounds.letters.held[other]) <= 4
            assert np.abs(node.model).max() < 100.0
        self.frontier = max(self.frontier, *self.reached.values())


def play(folder: Path, seed: int, faults: list[Fault]) -> None:
    """Run a schedule; `AssertionError` if an invariant breaks, or if the network does not recover from it."""
    file = network(folder)
    active: list[Fault] = []

    def link(random: random.Random, sender: int, receiver: int, now: float) -> float | None:
        delay = random.uniform(0.02, 0.04)
        for kind, _, _, whom in active:
            hit = (sender in whom) != (receiver in whom)
            if hit and (kind == "partition" or (kind == "loss" and random.random() < 0.3)):
                return None
            delay += random.uniform(0.0, 0.3) if hit and kind == "slow" else 0.0
        return delay

    with VirtualWorld(seed, link) as world:
        nodes = Nodes(world, file, folder, folder / "out")
        watch = Watch(nodes)
        world.checks.append(watch)
        world.start(liar(world, file, folder, seed))
        for peer in HONEST:
            nodes.start(peer)

        def begin(fault: Fault) -> None:
            active.append(fault)
            world.reorder = any(kind == "reorder" for kind, *_ in active)
            if fault[0] == "kill":
                nodes.kill(fault[3][0])

        def end(fault: Fault) -> None:
            active.remove(fault)
            world.reorder = any(kind == "reorder" for kind, *_ in active)
            if fault[0] == "kill" and nodes.running[fault[3][0]].ended:
                watch.reached[fault[3][0]] = 1 << 62
                nodes.start(fault[3][0])

        for fault in faults:
            world.at(fault[1], lambda fault=fault: begin(fault))  # type: ignore[misc]
            world.at(fault[1] + fault[2], lambda fault=fault: end(fault))  # type: ignore[misc]
        world.run(END + 3.0)
        before = {me: node.peer.round for me, node in nodes.latest.items()}
        world.run(world.time + 3.0)
        after = {me: node.peer.round for me, node in nodes.latest.items()}
        assert min(after[me] - before[me] for me in HONEST) >= 20, f"no recovery: {before} -> {after}"
        assert max(after.values()) - min(after.values()) <= 2, f"apart: {after}"


def broken(folder: Path, seed: int, faults: list[Fault]) -> str | None:
    """How a schedule fails."""
    folder = folder / f"{seed}-{len(faults)}-{random.getrandbits(64)}"
    folder.mkdir()
    try:
        play(folder, seed, faults)
    except AssertionError as error:
        return str(error)
    return None


def shrunk(fails: Callable[[list[Fault]], bool], faults: list[Fault]) -> list[Fault]:
    """A failing schedule without the faults that it does not need."""
    kept, place = list(faults), 0
    while place < len(kept):
        fewer = kept[:place] + kept[place + 1 :]
        if fails(fewer):
            kept = fewer
        else:
            place += 1
    return kept


def find(folder: Path, seed: int, path: Path = KEPT) -> str | None:
    """How the drawn schedule of a seed fails; one that does is shrunk and kept."""
    faults = drawn(seed)
    how = broken(folder, seed, faults)
    if how is None:
        return None
    small = shrunk(lambda fewer: broken(folder, seed, fewer) is not None, faults)
    keep(seed, small, how, path)
    return f"seed {seed}: {how}; shrunk to {small}, kept in {path.name}"


def kept(path: Path = KEPT) -> list[dict[str, Any]]:
    """Schedules that failed once."""
    found: list[dict[str, Any]] = json.loads(path.read_text())
    return found


def keep(seed: int, faults: list[Fault], how: str, path: Path = KEPT) -> None:
    """Add a schedule to those kept, unless it is among them."""
    others = kept(path)
    if not any(case["seed"] == seed and case["faults"] == faults for case in others):
        path.write_text(json.dumps([*others, {"seed": seed, "faults": faults, "how": how}], indent=1) + "\n")
