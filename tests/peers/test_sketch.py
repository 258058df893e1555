"""Peers that send sketches first: the simulator's models and bytes, hostile frames, and broken promises."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzmesh.peers.identity import new_keys
from byzmesh.peers.patience import Patience
from byzmesh.peers.peer import Peer
from byzmesh.peers.screening import Frame, Screening, decode_screening, encode_answer, encode_sketch
from byzmesh.peers.virtual import VirtualWorld
from byzmesh.peers.wire import Format
from byzmesh.sweeps.build import build
from tests.peers.test_channels import PEERS, _no_secrets, config, keys, planned  # noqa: F401 (fixtures)
from tests.peers.worlds import drill, train

SKETCH = {"name": "sketch", "width": 8, "slack": 1.0}


@pytest.mark.parametrize("channel", [[SKETCH], ["int8", SKETCH], ["clip", "gaussian-noise", "int8", SKETCH]])
def test_peers_train_as_the_simulator_does(samples: Path, keys: Path, tmp_path: Path, channel: Any) -> None:  # noqa: F811
    run = config(samples, channel)
    sent: list[int] = []
    models = train(
        planned(run, keys, tmp_path),
        keys,
        tmp_path / "out",
        lambda nodes: nodes.world.checks.append(lambda: sent.extend(n.peer.sent_bytes for n in nodes.latest.values())),
    )
    simulated = build(run).run()
    np.testing.assert_array_equal(models, simulated.models)
    assert max(sent) == simulated.workers["bytes_sent"][-1].max()
    everything = build(config(samples, channel[:-1])).run()
    assert np.abs(models - everything.models).max() > 1e-9, "somebody was left out"


@pytest.mark.parametrize("slack", [1.0, 1e6])
def test_lies_arrive_as_in_the_simulator(samples: Path, keys: Path, tmp_path: Path, slack: float) -> None:  # noqa: F811
    network = {"name": "complete", "n": PEERS, "byzantine": [1]}
    run = config(samples, ["int8", {**SKETCH, "slack": slack}], attack="sign-flipping", network=network)
    nodes = drill(planned(run, keys, tmp_path), keys, tmp_path / "out", [1], "sign-flipping")
    simulated = build(run).run()
    models = np.concatenate([nodes[peer].model for peer in sorted(nodes)])
    np.testing.assert_allclose(models, simulated.models, rtol=1e-9)
    sent = [nodes[peer].peer.sent_bytes for peer in sorted(nodes)]
    assert sent == simulated.workers["bytes_sent"][-1].tolist()


FORM = Format(5, 40, "float64", SKETCH)
MODEL = np.linspace(-1.0, 1.0, 40)


def sketch_of(vector: np.ndarray) -> np.ndarray:
    made: np.ndarray = FORM.channel.sketches(vector[None])[0]
    return made


@pytest.fixture
def peer() -> Iterator[Peer]:
    """Peer 0 with three neighbours, of which one may lie."""
    others = {neighbour: ("", new_keys().public) for neighbour in (3, 4)}
    own: dict[str, Any] = {"me": 0, "address": "", "keys": new_keys()}
    with VirtualWorld() as world:
        yield Peer(np.zeros(40), others, "ios", **own, f=1, run=5, channel=SKETCH, rounds=9, world=world)


def spoilt(frame: bytearray, place: int, value: bytes) -> bytes:
    frame[place : place + len(value)] = value
    return bytes(frame)


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (encode_sketch(FORM, np.zeros(7, np.float32), 3, 0), "channel"),
        (encode_sketch(FORM, np.full(8, np.nan, np.float32), 3, 0), "finite"),
        (encode_sketch(FORM, np.full(8, np.inf, np.float32), 3, 0), "finite"),
        (encode_sketch(FORM, np.zeros(8, np.float32), 4, 0), "sender"),
        (encode_sketch(Format(6, 40, "float64", SKETCH), np.zeros(8, np.float32), 3, 0), "run"),
        (encode_sketch(FORM, np.zeros(8, np.float32), 3, 0)[:-8], "size"),
        (spoilt(encode_sketch(FORM, np.zeros(8, np.float32), 3, 0), 32, b"\x01"), "header"),
        (spoilt(encode_answer(FORM, True, 3, 0, 0), 4, b"\x09"), "version"),
        (spoilt(encode_answer(FORM, True, 3, 0, 0), 24, b"\x02"), "payload"),
        (encode_answer(FORM, 2, 3, 0, 0), "payload"),  # type: ignore[arg-type]
        (Format(5, 40, "float64").encode(MODEL, 3, 0), "channel"),
    ],
)
def test_hostile_frames_are_refused_and_counted(peer: Peer, frame: bytes, reason: str) -> None:
    peer._take(3, bytes(frame), peer.world.now())
    assert dict(peer.tally.refused[3]) == {reason: 1}
    assert peer.rounds.seen[3] == -1


def test_a_peer_without_sketches_refuses_them_as_another_channel() -> None:
    other, own = {3: ("", new_keys().public)}, new_keys()
    with VirtualWorld() as world:
        plain = Peer(np.zeros(40), other, "mean", me=0, address="", keys=own, f=0, run=5, world=world)
        plain._take(3, bytes(encode_sketch(FORM, np.zeros(8, np.float32), 3, 0)), plain.world.now())
        assert dict(plain.tally.refused[3]) == {"channel": 1}


def asking() -> Screening:
    """A peer's side of a round in which it asks neighbours 3 and 4."""
    screening = Screening(FORM, [3, 4], 0)
    screening.say(FORM.encode(MODEL, 0, 6), 0, 6)
    screening.begin(0, 6, {3: (6, sketch_of(MODEL)), 4: (6, sketch_of(2 * MODEL))}, deadline=10.0)
    assert sorted(screening.asked) == [3, 4]
    return screening


def test_a_message_that_is_not_the_one_sketched_is_refused() -> None:
    screening = asking()
    with pytest.raises(Exception, match="not the one whose sketch was sent"):
        screening.take(3, FORM.encode(MODEL * (1.0 + 1e-6), 3, 6), 1e6)
    screening.take(3, FORM.encode(MODEL, 3, 5), 1e6)  # of another round: too late, no lie
    assert not screening.ready(0.0, 1.0)
    screening.take(3, FORM.encode(MODEL, 3, 6), 1e6)
    screening.take(4, FORM.encode(2 * MODEL, 4, 6), 0.5)
    came = screening.end()
    assert np.array_equal(came[3], MODEL) and np.abs(came[4]).max() == 0.5, "scaled down after the comparison"


def test_a_round_waits_for_answers_as_for_messages() -> None:
    screening = asking()
    for j, vector in ((3, MODEL), (4, 2 * MODEL)):
        screening.take(j, FORM.encode(vector, j, 6), 1e6)
    assert not screening.ready(0.0, 1.0), "a neighbour that has not answered may still ask"
    assert screening.answered(3, Frame(round=6, fetch=True)) is not None
    assert screening.answered(4, Frame(round=6, fetch=False)) is None
    assert screening.ready(0.0, 1.0)
    told = [screening.answered(3, Frame(round=6, fetch=True)) for _ in range(3)]
    assert told[0] is not None and told[1:] == [None, None], "twice is enough"
    assert screening.answered(3, Frame(round=2, fetch=True)) is None, "long gone"


def test_a_message_that_was_asked_for_and_comes_late_counts_once_in_the_next_round() -> None:
    screening = asking()
    screening.take(3, FORM.encode(MODEL, 3, 6), 1e6)
    assert sorted(screening.end()) == [3]
    screening.say(FORM.encode(MODEL, 0, 7), 0, 7)
    screening.begin(0, 7, {3: (7, sketch_of(MODEL))}, deadline=20.0)  # 4 says nothing new
    screening.take(4, FORM.encode(2 * MODEL, 4, 6), 1e6)
    assert sorted(screening.end()) == [4]
    screening.take(3, FORM.encode(MODEL, 3, 7), 1e6)
    for round, came in ((8, [3]), (9, [])):
        screening.begin(0, round, {}, deadline=30.0)
        assert sorted(screening.end()) == came


def test_whoever_has_not_answered_gets_the_message_unasked_before_the_peer_works() -> None:
    screening = asking()
    screening.answered(3, Frame(round=6))
    assert [to for to, _ in screening.leave(0, {3: 6, 4: 4})] == [], "4 is far behind, and moves up"
    ((to, (message, answer)),) = screening.leave(0, {3: 6, 4: 5})
    assert to == 4 and decode_screening(FORM, answer, 0) == Frame(round=6)
    behind = Screening(FORM, [0], 0)
    behind.take(0, message, 1e6)
    behind.say(FORM.encode(MODEL, 4, 6), 4, 6)
    ((_, reply),) = behind.begin(4, 6, {0: (6, sketch_of(MODEL))}, deadline=10.0)
    assert not decode_screening(FORM, reply, 4).fetch, "it is there already"
    assert not behind.ready(0.0, 1.0)
    behind.answered(0, decode_screening(FORM, answer, 0))
    assert behind.ready(0.0, 1.0) and np.array_equal(behind.end()[0], MODEL)


def test_an_unasked_message_that_is_not_the_one_sketched_does_not_count() -> None:
    screening = Screening(FORM, [3], 0)
    screening.take(3, FORM.encode(2 * MODEL, 3, 6), 1e6)
    screening.say(FORM.encode(MODEL, 0, 6), 0, 6)
    screening.begin(0, 6, {3: (6, sketch_of(MODEL))}, deadline=10.0)
    assert screening.end() == {}


@pytest.mark.parametrize("says", ["answer", "message"])
def test_who_does_half_of_what_it_should_is_not_waited_for_after_three_rounds(says: str) -> None:
    screening = Screening(FORM, [3], 0)
    waited = []
    for round in range(6):
        screening.say(FORM.encode(MODEL, 0, round), 0, round)
        screening.begin(0, round, {3: (round, sketch_of(MODEL))}, deadline=10.0)
        if says == "answer":
            screening.answered(3, Frame(round=round))
        else:
            screening.take(3, FORM.encode(MODEL, 3, round), 1e6)
        waited.append(not screening.ready(0.0, 1.0))
        screening.end()
    assert waited == [True] * 3 + [False] * 3


def test_who_breaks_its_word_is_soon_not_waited_for() -> None:
    """Peer 2 sends sketches and never the message: two timeouts' worth of grace, then rounds go on without it."""
    ends: list[list[float]] = [[], []]
    with VirtualWorld() as world:
        secret = [new_keys() for _ in range(3)]
        remote = [(f"127.0.0.1:{7000 + i}", key.public) for i, key in enumerate(secret)]

        def honest(me: int) -> None:
            near = {j: remote[j] for j in range(3) if j != me}
            patience = Patience(timeout=5.0, start=5.0, grace=0.5, start_grace=0.5)
            channel = {**SKETCH, "slack": 1e6}
            with Peer(np.full(40, float(me)), near, "mean", me=me, address=remote[me][0], keys=secret[me], f=1, run=5,
                      channel=channel, patience=patience, world=world) as one:  # fmt: skip
                for _ in range(8):
                    one.exchange(np.full(40, float(me)))
                    ends[me].append(world.now())

        def liar() -> None:
            from byzmesh.peers.transport import Remote

            transport = world.open(2, remote[2][0], secret[2], {j: Remote(*remote[j]) for j in (0, 1)}, 4096, print)
            for round in range(8):
                world.sleep(0.01)
                for number in range(8):
                    transport.send(encode_sketch(FORM, sketch_of(MODEL), 2, number))
                del round
            world.sleep(1e3)

        for work in (lambda: honest(0), lambda: honest(1), liar):
            world.start(work)
        world.run(until=200.0)
    assert len(ends[0]) == len(ends[1]) == 8
    assert max(np.diff(ends[0])[4:]) < 0.1 < max(np.diff(ends[0])[:3]) or max(np.diff(ends[0])) < 0.6
