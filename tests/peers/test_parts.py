"""Long messages in parts: the same guards for each, and a lost one costs its message only."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzmesh.channels.sizes import PART_BYTES, sent_bytes
from byzmesh.errors import ConfigError
from byzmesh.peers.drill import liars
from byzmesh.peers.identity import new_keys
from byzmesh.peers.parts import PART, Parts
from byzmesh.peers.patience import Patience
from byzmesh.peers.peer import Peer, no_log
from byzmesh.peers.transport import QUEUE, Remote
from byzmesh.peers.virtual import VirtualWorld
from byzmesh.peers.wire import HEADER, Format, WireError
from tests.peers.networks import four
from tests.peers.test_peer import circle
from tests.peers.worlds import PATIENT, Nodes, drill

KEYS = new_keys()
PATIENCE = Patience(timeout=1.0, start=2.0, start_grace=0.05)
FORM = Format(7, 100, "float64")
LIMIT = 128
"""A message of 840 bytes is six parts of 128 and one of 72."""


def frames(round: int = 3, value: float = 1.0, form: Format = FORM) -> list[bytearray]:
    return [bytearray(frame) for frame in Parts(form, LIMIT).frames(form.encode(np.full(100, value), 4, round))]


def heard(given: list[Any], parts: Parts | None = None) -> list[tuple[int, float]]:
    """Round and value of every message that these frames make."""
    parts = Parts(FORM, LIMIT) if parts is None else parts
    made = [whole for frame in given if (whole := parts.add(4, frame)) is not None]
    messages = [FORM.decode(whole, 4) for whole in made]
    assert all((message.vector == message.vector[0]).all() for message in messages)
    return [(message.round, float(message.vector[0])) for message in messages]


@pytest.mark.parametrize("dimension", [12, 13, 27, 100, 1000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_message_in_parts_is_the_same_message(dimension: int, dtype: str) -> None:
    form = Format(9, dimension, dtype)
    parts, vector = Parts(form, LIMIT), np.random.default_rng(0).normal(size=dimension).astype(dtype)
    whole = form.encode(vector, 2, 5)
    made = [bytes(frame) for frame in parts.frames(whole)]
    assert len(made) == parts.count == -(-len(whole) // LIMIT) and sum(map(len, made)) == parts.total
    assert max(map(len, made)) <= parts.frame
    arrived = [parts.add(2, frame) for frame in made]
    assert arrived[:-1] == [None] * (len(made) - 1) and arrived[-1] == whole
    assert form.decode(arrived[-1], 2).vector.tolist() == vector.tolist()


def test_a_short_message_is_not_split() -> None:
    parts = Parts(FORM)
    message = FORM.encode(np.ones(100), 4, 0)
    assert [*parts.frames(message)] == [message] and parts.add(4, message) is message
    assert parts.frame == parts.total == FORM.size == sent_bytes(800)


def test_parts_to_one_neighbour_are_addressed_to_it() -> None:
    for frame in Parts(FORM, LIMIT).frames(FORM.encode(np.ones(100), 4, 0), destination=9):
        assert frame[:2] == struct.pack("<H", 9)
    parts = Parts(FORM, LIMIT)
    assert heard(list(parts.frames(FORM.encode(np.ones(100), 4, 0), destination=9))) == [(0, 1.0)]


def test_a_message_that_is_begun_again_and_again_takes_room_once() -> None:
    """Clearing 400 MB takes a quarter of a second: first parts of 4 MiB could stop a peer."""
    parts, (first, second, third, *_) = Parts(FORM, LIMIT), frames(3)
    parts.add(4, first)
    room = parts._making[4].data
    for frame in (first, third, second, first, third, first):  # begun again, or given up in between
        assert parts.add(4, frame) is None
        assert parts._making[4].data is room
    assert parts.incomplete[4] == 3
    assert heard(frames(5, 2.0), parts) == [(5, 2.0)]
    assert 4 not in parts._making


@pytest.mark.parametrize("lost", range(7))
def test_a_lost_part_costs_its_message_only(lost: int) -> None:
    parts = Parts(FORM, LIMIT)
    given = frames(3)
    del given[lost]
    assert heard([*frames(2), *given, *frames(4)], parts) == [(2, 1.0), (4, 1.0)]
    assert parts.incomplete[4] == (lost > 0)  # without its first part it was never begun


def test_parts_out_of_order_repeated_or_of_another_round_make_no_message() -> None:
    good, other = frames(3), frames(4, 2.0)
    swapped = [good[0], good[2], good[1], *good[3:]]
    repeated = [good[0], good[1], good[1], *good[2:]]
    mixed = [*good[:3], *other[3:]]
    older = [*good[:5], other[5], good[6]]
    for given in (swapped, repeated, mixed, older):
        parts = Parts(FORM, LIMIT)
        assert heard([*given, *frames(5)], parts) == [(5, 1.0)] and parts.incomplete[4] == 1
    assert heard([good[0], *other]) == [(4, 2.0)]  # begun anew


def changed(frame: bytearray, offset: int, value: bytes) -> bytearray:
    frame = bytearray(frame)
    frame[offset : offset + len(value)] = value
    return frame


@pytest.mark.parametrize(
    ("reason", "spoil"),
    [
        ("size", lambda part: part[:-8]),
        ("size", lambda part: part + bytes(8)),
        ("size", lambda part: part[:20]),
        ("size", lambda part: part[:0]),
        ("version", lambda part: changed(part, 4, b"\x01")),
        ("version", lambda part: changed(part, 2, b"xx")),
        ("part", lambda part: changed(part, 5, b"\x02")),
        ("part", lambda part: changed(part, 24, struct.pack("<I", 7))),
        ("part", lambda part: changed(part, 24, struct.pack("<I", 0xFFFFFFFF))),
        ("part", lambda part: changed(part, 28, struct.pack("<I", 6))),
        ("part", lambda part: FORM.encode(np.ones(100), 4, 3)),
        ("size", lambda part: changed(part, 24, struct.pack("<I", 6))),  # the last one is shorter
        ("sender", lambda part: changed(part, 6, b"\x05\x00")),
        ("run", lambda part: changed(part, 16, b"\x08")),
        ("header", lambda part: changed(part, 32, b"\x01")),
    ],
)
def test_each_part_passes_the_guards_of_a_message(reason: str, spoil: Callable[[bytearray], bytearray]) -> None:
    parts = Parts(FORM, LIMIT)
    assert parts.add(4, frames()[0]) is None
    with pytest.raises(WireError) as error:
        parts.add(4, spoil(frames()[1]))
    assert error.value.reason == reason
    assert heard(frames()[1:], parts) == [(3, 1.0)]  # what was refused does no harm to what was begun


def test_a_neighbour_has_room_for_one_message() -> None:
    """A liar that begins message after message is given the memory of one."""
    parts = Parts(FORM, LIMIT)
    for round in range(50):
        assert parts.add(4, frames(round)[0]) is None
    assert sum(len(making.data) for making in parts._making.values()) == FORM.size
    parts.forget([4])
    assert not parts._making


def test_whole_messages_do_not_take_parts() -> None:
    with pytest.raises(WireError) as error:
        FORM.decode(frames()[0], 4)
    assert error.value.reason == "channel" and frames()[0][5] == PART


@pytest.mark.parametrize(("limit", "words"), [(36, "at least 40"), (44, "multiple of 8")])
def test_odd_limits_are_errors(limit: int, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Parts(FORM, limit)


def train(
    world: VirtualWorld, seconds: float, liar: Callable[[Any, Parts], None] | None = None, **options: Any
) -> dict[int, Peer]:
    """Three honest peers whose messages have seven parts, perhaps beside a liar, for some virtual seconds."""
    peers: dict[int, Peer] = {}
    count = 3 if liar is None else 4
    with world:

        def act(me: int) -> None:
            others = {i: ("", KEYS.public) for i in range(count) if i != me}
            usual = {"me": me, "address": "", "keys": KEYS, "f": count - 3, "world": world, "patience": PATIENCE}
            start = np.zeros(100)
            peer = peers[me] = Peer(start, others, "ios", part_bytes=LIMIT, **{**usual, **options})
            while not peer.total or peer.round < peer.total:
                world.sleep(0.01)
                peer.exchange(np.full(100, float(me)))
            peer.leave()

        def lie() -> None:
            parts = Parts(Format(0, 100, "float64"), LIMIT)
            others = {i: Remote("", KEYS.public) for i in range(3)}
            assert liar is not None
            liar(world.open(3, "", KEYS, others, parts.frame, no_log, parts.count), parts)

        if liar is not None:
            world.start(lie)
        for me in range(3):
            world.start(lambda me=me: act(me))  # type: ignore[misc]
        world.run(seconds)
    return peers


def test_without_loss_every_message_arrives() -> None:
    for me, peer in train(VirtualWorld(), 100.0, rounds=30).items():
        assert peer.round == 30 and peer.tally.used.tolist() == [30, 30]
        assert peer.sent_bytes == 30 * 2 * peer.parts.total and peer.parts.total == FORM.size + 7 * HEADER.size
        assert not peer.parts.incomplete and not any(c.total() for c in peer.tally.refused.values()), me


def lossy(share: float) -> Callable[[random.Random, int, int, float], float | None]:
    return lambda draws, sender, receiver, now: None if draws.random() < share else 0.001


def test_lost_parts_cost_messages_and_nothing_else() -> None:
    """One frame in fifty is lost: with seven parts, one message in eight. Nobody is refused, suspected or cut off."""
    world = VirtualWorld(3, lossy(0.02))
    for peer in train(world, 400.0, rounds=200).values():
        assert peer.round == 200
        assert (peer.tally.used > 120).all() and (peer.tally.used < 200).all()
        assert peer.parts.incomplete.total() > 10
        assert not any(c.total() for c in peer.tally.refused.values()) and not peer.cut_off.times
        assert not peer.suspects


def test_reordered_parts_cost_messages_and_nothing_else() -> None:
    world = VirtualWorld(3, lambda draws, *_: 0.001 if draws.random() < 0.98 else 0.002, reorder=True)
    for peer in train(world, 400.0, rounds=100).values():
        assert peer.round == 100 and (peer.tally.used > 50).all() and peer.parts.incomplete
        assert not any(c.total() for c in peer.tally.refused.values()) and not peer.cut_off.times


def test_parts_that_never_make_a_message_are_a_flood() -> None:
    """A liar begins messages as fast as it can: it pays for each part, and is cut off; the others go on."""

    def begin(transport: Any, parts: Parts) -> None:
        first = next(iter(parts.frames(parts.form.encode(np.ones(100), 3, 5))))
        while True:
            transport.receive(0.01)
            for _ in range(QUEUE * parts.count):
                transport.send(first)

    for peer in train(VirtualWorld(), 2.0, begin).values():
        assert peer.cut_off.times == {3: 1} and peer.round > 50 and peer.tally.used[-1] == 0


def test_a_liar_may_not_spoil_the_messages_of_others() -> None:
    """Its parts under another's name, with other sizes and of all rounds are refused; the honest lose nothing."""

    def spoil(transport: Any, parts: Parts) -> None:
        draws = random.Random(1)
        while True:
            for _, data in transport.receive(0.05)[0][:2]:
                transport.send(bytes(data))  # an honest part, sent on
                transport.send(bytes(data)[: draws.randrange(2, len(data))])
                mine = list(parts.frames(parts.form.encode(np.ones(100), 3, draws.randrange(9))))
                transport.send(draws.choice(mine))

    for peer in train(VirtualWorld(), 100.0, spoil, rounds=50).values():
        assert peer.round == 50 and peer.tally.used.tolist()[:2] == [50, 50]
        assert {"sender", "size"} <= set(peer.tally.refused[3])


def test_peers_with_sockets_exchange_long_messages() -> None:
    vectors = [np.full(5000, float(me)) for me in range(3)]
    for first, second, round in circle(vectors, "mean", f=0, part_bytes=1024):
        assert round == 2
        np.testing.assert_allclose(first, 1.0)
        np.testing.assert_allclose(second, 1.0)


def test_the_simulator_counts_the_bytes_of_all_parts() -> None:
    form = Format(0, PART_BYTES // 4 + 100)
    assert Parts(form).total == sent_bytes(form.payload) == form.size + 2 * HEADER.size


@pytest.mark.parametrize("rule", ["ios", "coomed", {"name": "cc", "tau": 5.0, "centre": "memory"}])
def test_long_vectors_are_aggregated_where_they_lie(rule: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages in parts are read block by block: three rounds give what short messages give."""

    def three_rounds(part_bytes: int) -> list[Any]:
        ended: dict[int, Any] = {}
        with VirtualWorld() as world:

            def act(me: int) -> None:
                others = {i: ("", KEYS.public) for i in range(4) if i != me}
                vector = np.random.default_rng(me).normal(size=100)
                peer = Peer(
                    *(vector, others, rule), me=me, address="", keys=KEYS, f=1, world=world, part_bytes=part_bytes
                )
                for _ in range(3):
                    vector = peer.exchange(vector * 0.9)
                peer.leave()
                ended[me] = vector, peer.tally.used.tolist(), peer.tally.ignored.tolist()

            for me in range(4):
                world.start(lambda me=me: act(me))  # type: ignore[misc]
            world.run()
        return [ended[me] for me in range(4)]

    whole = three_rounds(1 << 20)
    monkeypatch.setattr("byzmesh.rules.streamed.BLOCK", 33)
    for (vector, *counted), (expected, *told) in zip(three_rounds(LIMIT), whole, strict=True):
        np.testing.assert_allclose(vector, expected, rtol=1e-12)
        assert counted == told


@pytest.fixture
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody sends parts of 64 bytes."""
    monkeypatch.setitem(Peer.__init__.__kwdefaults__ or {}, "part_bytes", 64)
    monkeypatch.setattr(liars, "Parts", lambda form: Parts(form, 64))


def test_liars_of_a_drill_hear_and_send_parts(tmp_path: Path, short_parts: None) -> None:
    """Two peers, a liar, seven numbers in two parts: every lie arrives, and IOS ignores it."""
    problem = {"name": "quadratic", "dimension": 7, "targets": "normal"}
    file = four(tmp_path, rounds=20, problem=problem, timeouts=PATIENT)
    nodes = drill(file, tmp_path, tmp_path / "out", [3], "sign-flipping")
    for node in nodes.values():
        assert node.peer.parts.count == 2 and node.peer.round == 20
        assert node.peer.tally.used.tolist() == [20, 20, 20] and not any(node.peer.tally.refused.values())


def test_a_peer_that_restarts_goes_on(tmp_path: Path, short_parts: None) -> None:
    """One is killed again and again while parts are on their way, some of which get lost; nobody is refused for it."""
    problem = {"name": "quadratic", "dimension": 50, "targets": "normal"}
    file = four(tmp_path, rounds=60, problem=problem)
    with VirtualWorld(5, lossy(0.01)) as world:
        nodes = Nodes(world, file, tmp_path, tmp_path / "out")
        for me in range(4):
            nodes.start(me)

        def again() -> None:
            if not nodes.running[3].ended:
                nodes.kill(3)
                nodes.start(3)

        for time in (0.0835, 0.2191, 0.3407):
            world.at(time, again)
        world.run(60.0)
    assert [nodes.latest[me].peer.round for me in range(4)] == [60] * 4
    for me in range(3):
        peer = nodes.latest[me].peer
        assert peer.parts.count == 4 and not any(peer.tally.refused.values()) and not peer.cut_off.times
