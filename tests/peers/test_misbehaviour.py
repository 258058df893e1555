"""Neighbours that misbehave, in virtual time: refused, scaled down, cut off for a while (issue 18: rows 5, 10, 11)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzmesh.errors import DataError
from byzmesh.peers import budget
from byzmesh.peers.budget import BURST, FIRST_CUT, Budget
from byzmesh.peers.identity import load_keys, new_keys
from byzmesh.peers.links import Links
from byzmesh.peers.patience import Patience
from byzmesh.peers.peer import Peer, no_log
from byzmesh.peers.rounds import Rounds
from byzmesh.peers.transport import Remote
from byzmesh.peers.virtual import VirtualWorld
from byzmesh.peers.virtual_links import VirtualTransport
from byzmesh.peers.wire import EVERYONE, Format
from tests.peers.networks import four, make_network
from tests.peers.worlds import Nodes

KEYS = new_keys()
PATIENCE = Patience(timeout=1.0, start=2.0, start_grace=0.05)
Script = Callable[[VirtualWorld, Any, Format], None]


def beside(script: Script, seconds: float, work: float = 0.01, delay: float = 0.001, **options: Any) -> dict[int, Peer]:
    """Three honest peers beside a neighbour that follows a script, for some virtual seconds."""
    peers: dict[int, Peer] = {}
    form = Format(0, 2, "float64")
    with VirtualWorld(link=lambda *_: delay) as world:

        def act(me: int) -> None:
            others = {i: ("", KEYS.public) for i in range(4) if i != me}
            usual = {"me": me, "address": "", "keys": KEYS, "f": 1, "world": world, "patience": PATIENCE}
            peer = peers[me] = Peer(np.ones(2), others, "ios", **{**usual, **options})
            while not peer.total or peer.round < peer.total:
                world.sleep(work)
                peer.exchange(np.array([1.0, me]))
            peer.leave()

        def lie() -> None:
            others = {i: Remote("", KEYS.public) for i in range(3)}
            script(world, world.open(3, "", KEYS, others, form.size, no_log), form)

        world.start(lie)
        for me in range(3):
            world.start(lambda me=me: act(me))  # type: ignore[misc]
        world.run(seconds)
    return peers


def exchanging(
    count: int,
    neighbours: Callable[[int], list[int]],
    work: Callable[[int, VirtualWorld], float],
    seconds: float,
    silent: Collection[int] = (),
    patience: Patience = PATIENCE,
) -> dict[int, Peer]:
    """Honest peers beside silent ones for some virtual seconds; `work` says how long a round's local work takes."""
    peers: dict[int, Peer] = {}
    with VirtualWorld() as world:

        def act(me: int) -> None:
            others = dict.fromkeys(neighbours(me), ("", KEYS.public))
            peer = peers[me] = Peer(
                np.ones(1), others, "weimean", me=me, address="", keys=KEYS, f=1, world=world, patience=patience
            )
            while True:
                world.sleep(work(me, world))
                peer.exchange(np.ones(1))

        for me in set(range(count)) - set(silent):
            world.start(lambda me=me: act(me))  # type: ignore[misc]
        world.run(seconds)
    return peers


def ring(me: int) -> list[int]:
    """The neighbours in the ring of docs/peers.md."""
    return [(me + step) % 16 for step in (-2, -1, 1, 2)]


def flood(until: float) -> Script:
    """Sixty messages for each that it hears, until a time; one for each from then on."""

    def script(world: VirtualWorld, transport: Any, form: Format) -> None:
        while True:
            for sender, data in transport.receive(1.0)[0]:
                for _ in range(60 if world.time < until else 1):
                    transport.send(form.encode(np.ones(2), 3, form.decode(data, sender).round))

    return script


@pytest.fixture
def short_of_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small messages cost as much as large ones, so that a flood is one after few of them."""
    monkeypatch.setattr(budget, "QUICKEST", budget.SLOWEST)
    monkeypatch.setattr(budget, "HELD", 0)


@pytest.mark.usefixtures("short_of_budget")
def test_a_flooder_is_cut_off_for_longer_each_time() -> None:
    peers = beside(flood(100.0), 60.0, work=0.0, delay=0.2)
    assert all(peer.cut_off.times == {3: 3} for peer in peers.values())  # 10, 20 and 40 seconds


@pytest.mark.usefixtures("short_of_budget")
def test_a_neighbour_that_stops_flooding_is_heard_again() -> None:
    for peer in beside(flood(1.0), 2 * FIRST_CUT, work=0.05).values():
        assert peer.cut_off.times == {3: 1} and 3 not in peer.cut_off
        assert peer.round - peer.rounds.seen[3] <= 2


def test_liars_cannot_hurry_a_lone_honest_peer() -> None:
    """Row 10: the others start a minute later; a round without them lasts until its timeout."""
    began: dict[int, int] = {}
    with VirtualWorld() as world:
        peers: dict[int, Peer] = {}

        def act(me: int) -> None:
            others = {i: ("", KEYS.public) for i in range(7) if i != me}
            peer = peers[me] = Peer(
                np.ones(2), others, "ios", me=me, address="", keys=KEYS, f=2, world=world, patience=Patience()
            )
            while True:
                world.sleep(0.01)
                peer.exchange(np.ones(2))
                began.setdefault(me, peer.round)

        def hurry(me: int) -> None:
            form = Format(0, 2, "float64")
            transport = world.open(me, "", KEYS, {i: Remote("", KEYS.public) for i in range(5)}, form.size, no_log)
            while True:
                for sender, data in transport.receive(1.0)[0]:
                    round = form.decode(data, sender).round
                    for number in (round, round + 1):
                        transport.send(form.encode(np.ones(2), me, number, sender))

        for liar in (5, 6):
            world.start(lambda me=liar: hurry(me))  # type: ignore[misc]
        for me in range(5):
            world.start(lambda me=me: act(me), 0.0 if me == 0 else 60.0)  # type: ignore[misc]
        world.run(59.0)
        assert peers[0].round <= 7  # 30 seconds for the first, 5 for each of the others
        world.run(62.0)
    assert max(began.values()) <= 20 and min(peer.round for peer in peers.values()) > 50


def test_the_defence_is_there_by_default(tmp_path: Any) -> None:
    """Friction 10: f = 1 for whoever says nothing about it, and IOS then ignores the one that lies."""
    lies = sends(lambda form, round: form.encode(np.array([50.0, -50.0]), 3, round))
    for peer in beside(lies, 2.0, f=signature(Peer).parameters["f"].default).values():
        place = peer.neighbours.index(3)
        assert peer.f == 1 and peer.tally.ignored[place] == peer.tally.used[place] > 20
    assert make_network(tmp_path, 2, edges=[[0, 1]], rule="weimean", problem="quadratic").bound(0) == 1


def quiet(world: VirtualWorld, transport: Any, form: Format) -> None:
    world.sleep(1e9)


def test_long_local_work_loses_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 5: twelve seconds of work per round; connections are not taken for dead meanwhile, and not remade."""
    remade: list[int] = []
    monkeypatch.setattr(VirtualTransport, "disconnect", lambda transport, neighbour: remade.append(neighbour))
    peers = beside(quiet, 300.0, work=12.0)
    assert set(remade) <= {3}  # the quiet one
    for me, peer in peers.items():
        assert peer.round >= 20
        for other in {0, 1, 2} - {me}:
            assert peer.rounds.verdicts[other]["silent"] == 0


def test_links_grow_old_without_being_shut_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 11: three hours with a message a minute. Nothing is charged to a link for being open (after 1.8 hours the
    heartbeats of all honest neighbours together were taken for a flood)."""
    ended: list[int] = []
    monkeypatch.setattr(VirtualTransport, "disconnect", lambda transport, neighbour: ended.append(neighbour))
    for me, peer in beside(quiet, 3 * 3600.0, work=60.0).items():
        assert peer.round >= 170 and not peer.cut_off.times, me
        for other in {0, 1, 2} - {me}:
            assert peer.rounds.verdicts[other].keys() <= {"current", "early", "late"}
    assert not ended


def sends(make: Callable[[Format, int], bytes | bytearray]) -> Script:
    def script(world: VirtualWorld, transport: Any, form: Format) -> None:
        while True:
            for sender, data in transport.receive(1.0)[0]:
                if sender == 0:
                    transport.send(make(form, form.decode(data, sender).round))

    return script


@pytest.mark.parametrize(
    ("reason", "make"),
    [
        ("finite", lambda form, round: form.encode(np.array([1.0, np.inf]), 3, round)),
        ("run", lambda form, round: Format(5, 2, "float64").encode(np.ones(2), 3, round)),
        ("sender", lambda form, round: form.encode(np.ones(2), 2, round)),
        ("size", lambda form, round: form.encode(np.ones(2), 3, round)[:-1]),
        ("header", lambda form, round: (data := form.encode(np.ones(2), 3, round))[:32] + b"?" + data[33:]),
    ],
)
def test_what_is_refused_is_silence_and_named(reason: str, make: Callable[[Format, int], bytearray]) -> None:
    for me, peer in beside(sends(make), 2.0, rounds=1000).items():
        assert set(peer.tally.refused[3]) == {reason} and peer.suspects[0] == 3, me
        assert peer.tally.used[peer.neighbours.index(3)] == 0 and 20 < peer.round < 1000


def test_magnitudes_are_bounded_by_what_the_peer_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is larger is scaled down, and stays an outlier that the rule cuts."""
    seen: list[float] = []
    former = Rounds.offer

    def offer(rounds: Rounds, sender: int, round: int, vector: Any, now: float, top: float) -> str:
        seen.append(float(np.abs(vector).max()))
        assert seen[-1] <= top
        return former(rounds, sender, round, vector, now, top)

    monkeypatch.setattr(Rounds, "offer", offer)
    huge = sends(lambda form, round: form.encode(np.array([1e300, -1e308]), 3, round))
    for peer in beside(huge, 2.0, rounds=1000).values():
        place = peer.neighbours.index(3)
        assert not peer.tally.refused[3] and peer.tally.ignored[place] == peer.tally.used[place] > 20
    assert max(seen) == pytest.approx(2e6)  # the largest coordinate that any honest peer holds is 2


def test_nobody_moves_beyond_the_last_round() -> None:
    """All but one honest peer say so: still nobody goes there."""

    def beyond(world: VirtualWorld, transport: Any, form: Format) -> None:
        while True:
            transport.send(form.encode(np.ones(2), 3, 5000, EVERYONE))
            transport.receive(0.05)

    assert all(peer.round == 40 for peer in beside(beyond, 60.0, rounds=40).values())


def test_what_a_liar_says_of_rounds_beyond_the_last_is_not_used_nor_held_against_it() -> None:
    """An honest neighbour may have more rounds; f of them may lie."""
    beyond = sends(lambda form, round: form.encode(np.ones(2), 3, 1000 + round))
    for me, peer in beside(beyond, 2.0, rounds=1000).items():
        assert peer.rounds.seen[3] >= 1000 and not peer.jumps and 20 < peer.round < 1000, me
        assert peer.tally.used[peer.neighbours.index(3)] == 0 and not peer.tally.refused[3] and 3 not in peer.suspects


def test_two_runs_of_one_config_do_not_understand_each_other(tmp_path: Any) -> None:
    """Row 10: a forgotten process of an earlier run."""
    spec: dict[str, Any] = {"edges": [[0, 1]], "rule": "weimean", "problem": "quadratic"}
    file = make_network(tmp_path, 2, **spec)
    first, second = (file.model_copy(update={"nonce": nonce}) for nonce in ("a", "b"))
    assert len({file.run, first.run, second.run}) == 3


@pytest.mark.parametrize(("name", "moved"), [("", True), ("second", False)])
def test_a_forgotten_process_moves_fresh_peers_unless_the_run_has_another_name(
    tmp_path: Path, name: str, moved: bool
) -> None:
    """Row 10: the same file, f = 0, and a process of an earlier run that is in round 816."""
    file = four(tmp_path, f=0, rounds=5000)
    form = Format(file.run, 5, file.dtype)

    def forgotten() -> None:
        keys, round = load_keys(tmp_path / "peer3.key"), 816
        transport = world.open(3, "", keys, file.remotes(3), form.size, no_log)
        while True:
            transport.receive(0.05)
            transport.send(form.encode(np.ones(5), 3, round))
            round += 1

    with VirtualWorld(link=lambda *_: 0.05) as world:
        nodes = Nodes(world, file, tmp_path, tmp_path / "out", run=name)
        world.start(forgotten)
        for me in (0, 1, 2):
            nodes.start(me)
        world.run(3.0)
        assert all((node.peer.round > 816) == moved for node in nodes.latest.values())
        assert moved or set(nodes.latest[0].peer.tally.refused[3]) == {"run"}


def test_a_restarted_peer_needs_the_name_that_its_run_had(tmp_path: Path) -> None:
    """With it, and without a checkpoint, it catches up; a checkpoint of another name is refused."""
    file = four(tmp_path, rounds=5000)
    with VirtualWorld(link=lambda *_: 0.05) as world:
        nodes = Nodes(world, file, tmp_path, tmp_path / "out", run="second")
        for me in range(4):
            nodes.start(me)
        world.run(3.0)
        nodes.kill(0)
        with pytest.raises(DataError, match=r"another run or peer; choose another --out, or the same --run"):
            nodes.make(0, run="third")
        for left in (tmp_path / "out").glob("peer0.*"):
            left.unlink()
        before = nodes.latest[1].peer.round
        nodes.start(0)
        world.run(5.0)
        assert nodes.latest[0].peer.round > before > 10


@pytest.mark.parametrize(
    ("links", "dies"),
    [({0: [1], 1: [0]}, None), ({0: [1, 3], 1: [0, 2], 2: [1, 3], 3: [2, 0]}, 3)],
    ids=["two peers", "one of a ring of four dies"],
)
def test_quick_rounds_among_few_neighbours_are_no_flood(links: dict[int, list[int]], dies: int | None) -> None:
    """Nobody lies. With f = 1 nobody has, or keeps, a second neighbour that vouches for the rounds of the first."""
    peers: dict[int, Peer] = {}
    patience = Patience(timeout=1.0, start=2.0, start_grace=0.1)
    with VirtualWorld(link=lambda *_: 0.002) as world:

        def act(me: int) -> None:
            others = dict.fromkeys(links[me], ("", KEYS.public))
            peer = peers[me] = Peer(
                np.ones(2), others, "weimean", me=me, address="", keys=KEYS, f=1, world=world, patience=patience
            )
            while True:
                world.sleep(0.001)
                peer.exchange(np.array([1.0, me]))

        running = {me: world.start(lambda me=me: act(me)) for me in links}  # type: ignore[misc]
        if dies is not None:
            world.at(0.5, running[dies].kill)
        world.run(6.0)
    alive = [peer for me, peer in peers.items() if me != dies]
    assert all(peer.round > 600 and not peer.cut_off.times for peer in alive)


def test_silent_liars_do_not_cut_the_sides_of_a_ring_apart() -> None:
    """Row 13: one side works 1.5 times as long; 14 of 327 messages of the quick side counted on the slow one."""
    peers = exchanging(
        16, ring, lambda me, _: 0.08 if me < 8 else 0.12, 8.0, silent={0, 8}, patience=Patience(start_grace=0.1)
    )
    quick, slow = peers[7], peers[9]
    assert quick.round > 1.3 * slow.round > 50
    assert slow.tally.used[slow.neighbours.index(7)] >= 0.95 * slow.round
    assert quick.tally.used[quick.neighbours.index(9)] >= 0.95 * slow.round


def test_an_honest_neighbour_never_runs_out_of_budget() -> None:
    """Row 2: one message per round, and four more to a peer that reconnects in every round, in no time."""
    accounts = Budget([1], now=0.0, size=1 << 20)
    assert all(accounts.spend(1, round, now=0.0) for round in range(5000) for _ in range(5))
    assert sum(accounts.spend(1, round=5000, now=0.0) for _ in range(5000)) <= BURST + 6


def test_whoever_reconnects_all_the_time_gets_four_messages_more_per_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as the budget of an honest neighbour is for."""
    sent: Counter[tuple[int, int]] = Counter()
    send = Links._send

    def counted(links: Links, message: bytearray, destination: int | None = None) -> None:
        sent[links.me, links.round] += destination == 3
        send(links, message, destination)

    def script(world: VirtualWorld, transport: Any, form: Format) -> None:
        while True:
            transport.receive(0.002)
            for peer in range(3):
                transport.disconnect(peer)
                transport.connect(peer)

    monkeypatch.setattr(Links, "_send", counted)
    beside(script, 5.0, delay=0.02)
    assert max(sent.values()) == 4


@pytest.mark.parametrize("seconds", [0.6, 3.0])
def test_a_peer_that_was_paused_cuts_nobody_off(seconds: float) -> None:
    """Thousands of small messages wait in each link; of one neighbour all are read before any of another."""
    paused = False

    def work(me: int, world: VirtualWorld) -> float:
        nonlocal paused
        if me == 0 and world.time > 1.0 and not paused:
            paused = True
            return seconds
        return 0.001

    peers = exchanging(4, lambda me: [i for i in range(4) if i != me], work, seconds + 2.0)
    assert paused and peers[1].round > 1000 * seconds * 0.4
    assert all(not peer.cut_off.times for peer in peers.values())
    assert peers[0].round >= peers[1].round - 2


@pytest.mark.parametrize("slow", [0.15, 1.0])
def test_a_slow_peer_cuts_no_quick_neighbour_off(slow: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ring of docs/peers.md, where one side is 30 or 200 times as quick: 9 has one quick neighbour only, 7."""
    monkeypatch.setattr(budget, "HELD", 0)  # as if messages were larger
    peers = exchanging(16, ring, lambda me, _: 0.005 if me < 8 else slow, 6.0, silent={0, 8})
    assert peers[4].round > 10 * peers[12].round
    assert all(not peer.cut_off.times for peer in peers.values())


@pytest.mark.parametrize("stop", [True, False])
def test_who_was_told_to_stop_waits_a_second_at_most_for_those_who_read_nothing(
    stop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lingered: list[float] = []
    monkeypatch.setattr(VirtualTransport, "close", lambda _, linger=0.0: lingered.append(linger))
    with VirtualWorld() as world:
        peer = Peer(np.ones(1), {}, "mean", me=0, address="", keys=KEYS, f=0, world=world)
        peer.leave(10.0, lambda: stop)
    assert lingered[0] == (1.0 if stop else 10.0)
