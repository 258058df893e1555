"""Members that change while peers train, in virtual time: the same peers, their real checkpoints, no restart."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import byzmesh.peers.node
from byzmesh.errors import Isolated, PeerError
from byzmesh.peers.aggregation import Aggregation
from byzmesh.peers.changes import NewPeer, sign_file
from byzmesh.peers.identity import load_keys, new_keys, one_more_key
from byzmesh.peers.join import join
from byzmesh.peers.membership import Removed
from byzmesh.peers.peer import Peer, no_log
from byzmesh.peers.run_peer import run_peer
from byzmesh.peers.transport import Remote
from byzmesh.peers.virtual import VirtualWorld
from byzmesh.peers.wire import Format
from tests.peers.members import Members, next_file, signed_network, spread, start_all


def link(random: random.Random, *_: object) -> float:
    return random.uniform(0.05, 0.1)


def in_force(members: Members) -> dict[int, list[tuple[int, int]]]:
    """Peer -> (epoch, round in which it took it up)."""
    found: dict[int, list[tuple[int, int]]] = {}
    for _, me, what, facts in members.log:
        if what == "epoch in force":
            found.setdefault(me, []).append((facts["epoch"], facts["round"]))
    return found


def test_one_peer_more(tmp_path: Path) -> None:
    """One peer's disk gets the file; all take it up in its round, and the new one trains with them."""
    file = signed_network(tmp_path, 4)
    key = one_more_key(tmp_path, 4)[1]
    later = next_file(tmp_path, file, 60, add={4: NewPeer("127.0.0.1:9", key, [0, 1, 2, 3])})
    with VirtualWorld(1, link) as world:
        members = start_all(world, file, tmp_path)
        members.reach(20)
        members.give(2, later.text)
        members.give(4, later.text)
        members.start(4)
        world.run()
    assert in_force(members) == {me: [(1, 60)] for me in range(4)}
    (joined,) = members.said("joined", 4)
    assert 59 <= joined["round"] <= 80 and joined["models"] == 4
    assert all(node.peer.round == 150 and node.file.epoch == 1 for node in members.latest.values())
    for me in range(4):
        peer = members.latest[me].peer
        assert peer.neighbours[-1] == 4 and peer.tally.used[-1] > 60
        assert not members.said("resumed", me) and peer.jumps <= 2


def test_one_peer_less(tmp_path: Path) -> None:
    """The removed peer leaves by itself, with its checkpoint and without an error; ids keep their meaning."""
    file = signed_network(tmp_path, 5)
    later = next_file(tmp_path, file, 60, remove=[1])
    with VirtualWorld(2, link) as world:
        members = start_all(world, file, tmp_path)
        members.reach(20)
        members.give(3, later.text)
        world.run()
        assert members.said("removed", 1)[0]["round"] == 60 and members.running[1].error is None
        for me in (0, 2, 3, 4):
            peer = members.latest[me].peer
            assert peer.round == 150 and 1 not in peer.neighbours and peer.weight.shape == (1, 4)
            assert abs(float(peer.weight.sum()) - 1.0) < 1e-12
        members.start(1)
        world.run()
        assert len(members.said("removed", 1)) == 2 and members.running[1].error is None
    assert spread(members, (0, 2, 3, 4)) < 1.0


@pytest.mark.parametrize("from_round", [0, 20])
def test_a_removal_that_only_the_removed_peer_is_given_reaches_all(tmp_path: Path, from_round: int) -> None:
    """It leaves in the round in which it reads the file: it tells its neighbours first."""
    file = signed_network(tmp_path, 5)
    later = next_file(tmp_path, file, from_round, remove=[4])
    with VirtualWorld(2, link) as world:
        members = start_all(world, file, tmp_path)
        members.reach(22)
        members.give(4, later.text)
        world.run()
    assert len(members.said("removed", 4)) == 1 and members.running[4].error is None
    for me in range(4):
        assert members.latest[me].peer.round == 150 and 4 not in members.latest[me].peer.neighbours
    assert members.epochs() == {0: 1, 1: 1, 2: 1, 3: 1, 4: 0}


def test_a_removed_peer_that_is_started_with_its_old_file_says_so(tmp_path: Path) -> None:
    file = signed_network(tmp_path, 5)
    later = next_file(tmp_path, file, 0, remove=[4])
    with VirtualWorld(2, link) as world:
        members = start_all(world, file, tmp_path)
        members.reach(20)
        members.give(4, later.text)
        world.run(done=lambda: members.running[4].ended)
        members.give(4, file.text)
        members.start(4)
        with pytest.raises(Removed, match=r"peer 4 is not a member from epoch 1 on, .* choose another --out") as end:
            world.run()
    assert end.value.exit_code == 0


def test_the_command_of_a_removed_peer_logs_it_and_ends_without_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = signed_network(tmp_path, 5), tmp_path / "out"
    out.mkdir()
    (out / "peer4.network.yaml").write_bytes(next_file(tmp_path, file, 0, remove=[4]).text)
    run_peer(tmp_path / "network.yaml", 4, tmp_path / "peer4.key", out=out)
    (line,) = map(json.loads, capsys.readouterr().err.splitlines())
    assert line["event"] == "removed" and "not a member from epoch 1 on" in line["text"]


def test_a_removed_peer_that_stays_is_not_heard(tmp_path: Path) -> None:
    """A liar that ignores its removal: no message of it counts in or after that round, and nobody lets it in."""
    file = signed_network(tmp_path, 5)
    later = next_file(tmp_path, file, 60, remove=[4])
    form = Format(file.run, 5, file.dtype)
    with VirtualWorld(3, link) as world:
        members = start_all(world, file, tmp_path, range(4))
        heard: list[float] = []

        def lie() -> None:
            transport = world.open(4, "", load_keys(tmp_path / "peer4.key"), file.remotes(4), form.size, print)
            while world.time < 30.0:
                for _ in transport.receive(0.1)[0]:
                    heard.append(world.time)
                newest = max((node.peer.round for node in members.latest.values()), default=0)
                for number in (newest, newest + 1, newest + 2, newest + 3):
                    transport.send(bytes(form.encode(np.full(5, 3.0), 4, number)))
                for neighbour in range(4):
                    transport.disconnect(neighbour)
                    transport.connect(neighbour)

        world.start(lie)
        members.reach(20)
        members.give(0, later.text)
        members.reach(60)
        since = world.time
        used = {me: members.latest[me].peer.rounds.letters.held.keys() | {0} for me in range(4)}
        members.reach(100)
    assert all(4 not in known for known in used.values())
    assert heard and max(heard) < since + 0.2  # what was on its way
    assert all(members.latest[me].peer.transport.strangers > 0 for me in range(4))


def test_every_key_in_turn_while_training(tmp_path: Path) -> None:
    """Each peer gets its next key, one after another; nobody restarts, and no round is lost at anybody."""
    file = signed_network(tmp_path, 5, rounds=250)
    with VirtualWorld(4, link) as world:
        members = start_all(world, file, tmp_path)
        newest = file
        for me in range(5):
            members.reach(40 * me + 5)
            key = one_more_key(tmp_path, me)[1]
            newest = next_file(tmp_path, newest, 40 * (me + 1), keys={me: key})
            members.give((me + 2) % 5, newest.text)
            members.reach(40 * (me + 1) + 20)
            assert members.latest[me].peer.transport.keys.public == key  # type: ignore[attr-defined]
            assert all(me not in members.latest[other].peer.lost for other in range(5) if other != me)
        world.run()
    assert all(node.peer.round == 250 for node in members.latest.values())
    assert in_force(members) == {me: [(k + 1, 40 * (k + 1)) for k in range(5)] for me in range(5)}
    assert not members.said("resumed") and spread(members, range(5)) < 1.0
    for node in members.latest.values():
        # a rotated neighbour is away for a few rounds
        assert node.peer.tally.used.min() >= 20 and node.peer.rounds.usual < 0.2


@pytest.mark.parametrize("knows", [1, 3])
def test_whoever_alone_knows_of_a_new_key_tells_the_others(tmp_path: Path, knows: int) -> None:
    """Found by the soak, with an address: from then on nobody heard it, so nobody could learn why. Peer 1 is the first
    to say anything in every round, so nobody who hears of its new key hears it after that."""
    file = signed_network(tmp_path, 5)
    later = next_file(tmp_path, file, 0, keys={1: one_more_key(tmp_path, 1)[1]})
    with VirtualWorld(6, lambda random, sender, *_: 0.001 if sender == 1 else random.uniform(0.05, 0.1)) as world:
        members = start_all(world, file, tmp_path)
        members.reach(20)
        members.give(knows, later.text)
        members.reach(60)
        assert members.epochs() == dict.fromkeys(range(5), 1)


def test_a_run_with_a_name_hears_of_a_new_key_as_others_do(tmp_path: Path) -> None:
    file = signed_network(tmp_path, 4)
    later = next_file(tmp_path, file, 21, keys={3: one_more_key(tmp_path, 3)[1]})
    with VirtualWorld(8, link) as world:
        members = Members(world, file, tmp_path, tmp_path / "out", run="second")
        for me in file.ids:
            members.start(me)
        members.reach(20)
        members.give(3, later.text)
        members.reach(40)
        assert members.epochs() == dict.fromkeys(range(4), 1)
        assert not any(refused for node in members.latest.values() for refused in node.peer.tally.refused.values())


def test_all_keys_at_once(tmp_path: Path) -> None:
    file = signed_network(tmp_path, 4)
    keys = {me: one_more_key(tmp_path, me)[1] for me in range(4)}
    later = next_file(tmp_path, file, 60, keys=keys)
    with VirtualWorld(5, link) as world:
        members = start_all(world, file, tmp_path)
        members.reach(20)
        members.give(0, later.text)
        world.run()
    assert all(node.peer.round == 150 and node.file.epoch == 1 for node in members.latest.values())
    assert not members.said("resumed") and world.time < 40.0


def test_a_thief_of_a_replaced_key_is_refused(tmp_path: Path) -> None:
    """Whoever stole the old key listens at the peer's address and connects to everybody: nobody talks to it."""
    file = signed_network(tmp_path, 4)
    later = next_file(tmp_path, file, 60, keys={3: one_more_key(tmp_path, 3)[1]})
    form = Format(file.run, 5, file.dtype)
    stolen: list[Any] = []

    with VirtualWorld(6, link) as world:
        members = start_all(world, file, tmp_path)
        members.reach(10)
        members.give(3, later.text)
        members.reach(70)
        members.kill(3)

        def steal() -> None:
            transport = world.open(3, "", load_keys(tmp_path / "peer3.key"), later.remotes(3), form.size, print)
            while True:
                stolen.extend(transport.receive(0.1)[0])
                newest = max(members.latest[me].peer.round for me in range(3))
                transport.send(bytes(form.encode(np.full(5, 1e3), 3, newest)))
                for neighbour in range(3):
                    transport.disconnect(neighbour)
                    transport.connect(neighbour)

        world.start(steal)
        world.run(world.time + 0.3)
        before = {me: int(members.latest[me].peer.tally.used[-1]) for me in range(3)}
        members.reach(120, peers=range(3))
        assert {me: int(members.latest[me].peer.tally.used[-1]) for me in range(3)} == before
    assert not stolen


def test_f_and_an_address_change(tmp_path: Path) -> None:
    file = signed_network(tmp_path, 6)
    later = next_file(tmp_path, file, 60, f=2, addresses={5: "127.0.0.1:9"})
    with VirtualWorld(7, link) as world:
        members = start_all(world, file, tmp_path)
        members.reach(20)
        members.give(1, later.text)
        world.run()
    for node in members.latest.values():
        assert node.peer.round == 150 and node.peer.f == node.peer.rounds.f == int(node.peer._bound[0]) == 2
    assert members.latest[0].peer.transport.neighbours[5].address == "127.0.0.1:9"  # type: ignore[attr-defined]


def test_a_file_edited_by_hand_is_taken_up_in_all_that_may_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other links, weights, f of each peer, timeouts and evaluations, and more rounds: running peers go by them."""
    file = signed_network(tmp_path, 6, rule="weimean", evaluate_every=40)
    edited = yaml.safe_load(file.text)
    for key in ("signature", "topology"):
        del edited[key]
    edited |= {"epoch": 1, "from_round": 60, "weights": "lazy", "rounds": 200, "evaluate_every": 25}
    cut = {(0, 1), (0, 2), (1, 5), (3, 4)}
    edited["edges"] = [list(link) for link in itertools.combinations(range(6), 2) if link not in cut]
    edited["f"] = {peer: peer % 2 for peer in range(6)}
    edited["timeouts"] |= {"round": 1.5}
    (tmp_path / "by-hand.yaml").write_text(yaml.safe_dump(edited))
    later = sign_file(tmp_path / "by-hand.yaml", tmp_path / "operator.key", tmp_path / "network.yaml")
    weighed: dict[int, tuple[Any, Any]] = {}
    apply = Aggregation.apply

    def spy(self: Aggregation, half: Any, messages: Any, came: Any, *rest: Any, **more: Any) -> Any:
        outcome, state = apply(self, half, messages, came, *rest, **more)
        if came.all():
            weighed[int(self._receiver[0])] = np.vstack([half, messages]), outcome.models[0]
        return outcome, state

    monkeypatch.setattr(Aggregation, "apply", spy)
    with VirtualWorld(8, link) as world:
        members = start_all(world, file, tmp_path)
        members.reach(20)
        members.give(1, later.text)
        members.reach(100)
        weighed.clear()
        world.run()
    assert in_force(members) == {me: [(1, 60)] for me in range(6)}
    for me, node in members.latest.items():
        weights = later.weights_of(me)
        assert node.peer.neighbours == sorted(weights) != sorted(file.remotes(me))
        assert node.peer.round == 200 and node.peer.f == node.peer.rounds.f == me % 2
        assert node.peer.rounds.patience.timeout == 1.5
        vectors, mean = weighed[me]
        own = 1.0 - sum(weights.values())
        np.testing.assert_allclose(mean, np.array([own, *weights.values()]) @ vectors, rtol=1e-5)
        assert [facts["round"] for facts in members.said("evaluated", me)] == [0, 40, 75, 100, 125, 150, 175, 200]


def test_a_key_that_is_not_there(tmp_path: Path) -> None:
    """The peer whose new key nobody put beside the old one says so and ends; the others go on."""
    file = signed_network(tmp_path, 4)
    path, key = one_more_key(tmp_path, 3)
    later = next_file(tmp_path, file, 60, keys={3: key})
    path.unlink()
    with VirtualWorld(8, link) as world:
        members = start_all(world, file, tmp_path)
        members.reach(20)
        members.give(3, later.text)
        members.reach(50)
        assert members.said("epoch known", 3)[0]["has_key"] is False
        with pytest.raises(PeerError, match=r"put the file with that key beside it, e.g. as peer3.2.key"):
            world.run()


def test_an_old_key_file_may_be_deleted(tmp_path: Path) -> None:
    """After a rotation: later files still count, nobody is blamed for them, and the peer can be started again."""
    file = signed_network(tmp_path, 4)
    one = next_file(tmp_path, file, 40, keys={3: one_more_key(tmp_path, 3)[1]})
    two = next_file(tmp_path, one, 80, addresses={0: "127.0.0.1:9"})
    with VirtualWorld(8, link) as world:
        members = start_all(world, file, tmp_path)
        members.reach(20)
        members.give(3, one.text)
        members.reach(60)
        (tmp_path / "peer3.key").unlink()
        members.give(0, two.text)
        members.reach(90)
        assert members.epochs() == dict.fromkeys(range(4), 2) and not members.said("refused", 3)
        assert members.said("epoch known", 3)[-1]["has_key"] is True
        members.kill(3)
        members.start(3)
        members.reach(130)
        assert members.epochs()[3] == 2


def test_a_joiner_that_comes_too_early_gives_up(tmp_path: Path) -> None:
    file = signed_network(tmp_path, 4, timeouts={"alone": 5.0})
    later = next_file(tmp_path, file, 140, add={4: NewPeer("127.0.0.1:9", one_more_key(tmp_path, 4)[1], [0, 1, 2])})
    with VirtualWorld(9, link) as world:
        members = start_all(world, file, tmp_path)
        members.give(4, later.text)
        members.start(4)
        with pytest.raises(Isolated, match="needs 3 to join; start it again when"):
            world.run(10.0)


def test_a_joiner_that_is_stopped_before_joins_when_it_is_started_again(tmp_path: Path) -> None:
    file = signed_network(tmp_path, 4, rounds=100_000)
    later = next_file(tmp_path, file, 60, add={4: NewPeer("127.0.0.1:9", one_more_key(tmp_path, 4)[1], range(4))})
    with VirtualWorld(3, link) as world:
        members = start_all(world, file, tmp_path)
        members.reach(10)
        members.give(0, later.text)
        members.give(4, later.text)
        waiting = members.start(4)
        world.run(world.time + 0.5)
        members.latest[4].stop = True
        world.run(world.time + 5.0, done=lambda: waiting.ended)
        assert waiting.ended and [what for _, me, what, _ in members.log if me == 4] == ["joining", "left"]
        members.start(4)
        members.reach(70)
        assert members.said("joined", 4) and not members.said("resumed", 4)


@pytest.mark.parametrize("count", [3, 4])
def test_one_silent_liar_keeps_a_joiner_out_only_if_it_has_no_more_than_3_f_neighbours(
    tmp_path: Path, count: int
) -> None:
    file = signed_network(tmp_path, 4, timeouts={"alone": 5.0})
    key = one_more_key(tmp_path, 4)[1]
    later = next_file(tmp_path, file, 0, add={4: NewPeer("127.0.0.1:9", key, range(4 - count, 4))})
    with VirtualWorld(9, link) as world:
        members = start_all(world, file, tmp_path, range(3))  # 3 is silent
        members.reach(5)
        members.give(0, later.text)
        members.give(4, later.text)
        members.start(4)
        if count == 4:
            world.run(world.time + 6.0)
            assert members.said("joined", 4)[0]["models"] == 3
        else:
            with pytest.raises(Isolated, match=r"1 of its 3 neighbours can keep it out by silence; with 3 f \+ 1 = 4"):
                world.run(world.time + 6.0)
        assert [sorted(facts) for facts in members.said("joining", 4)] == [
            ["needs", "neighbours"] if count == 4 else ["needs", "neighbours", "text"]
        ]


def test_a_joiner_needs_more_honest_neighbours_than_liars(tmp_path: Path) -> None:
    file = signed_network(tmp_path, 4)
    later = next_file(tmp_path, file, 0, add={4: NewPeer("127.0.0.1:9", one_more_key(tmp_path, 4)[1], [0, 1])})
    with VirtualWorld(9, link) as world:
        members = start_all(world, later, tmp_path, [4])
        with pytest.raises(PeerError, match=r"cannot join with 2 neighbours and f = 1: it needs 2 f \+ 1 = 3"):
            world.run(5.0)
        assert members.running[4].ended


@pytest.mark.parametrize(("honest", "lie"), [(5e7, 1e300), (1.0, 1e300), (1e-3, 5e8)])
def test_a_joiner_starts_among_large_models(honest: float, lie: float) -> None:
    """Models above a million are no lies to whoever has none; what is too large beside them is scaled down after."""
    keys, form = new_keys(), Format(0, 2, "float64")
    got: list[Any] = []
    with VirtualWorld(1, link) as world:

        def say(me: int, value: float) -> None:
            transport = world.open(me, "", keys, {9: Remote("", keys.public)}, form.size, no_log)
            for number in range(100):
                transport.receive(0.1)
                transport.send(form.encode(np.array([value, -value]), me, number))

        def joiner() -> None:
            neighbours = dict.fromkeys(range(3), ("", keys.public))
            peer = Peer(np.zeros(2), neighbours, "ios", me=9, address="", keys=keys, f=1, world=world)
            model = join(peer, 30.0, lambda: False)
            got.extend((model, max(np.abs(vector).max() for vector in peer.rounds.letters.newest.values())))

        for me, value in enumerate((honest, honest * 1.5, lie)):
            world.start(lambda me=me, value=value: say(me, value))  # type: ignore[misc]
        world.start(joiner)
        world.run(3.0)
    model, largest = got
    assert honest <= model[0] <= 1.5 * honest and -1.5 * honest <= model[1] <= -honest
    assert largest <= 1e6 * max(1.0, 1.5 * honest) * (1.0 + 1e-9)


@pytest.mark.parametrize("lie", [1e30, -5.0, 0.0])
def test_a_joiner_among_liars(tmp_path: Path, lie: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """f liars, who admit it at once and answer first, do not move its start out of the honest range."""
    file = signed_network(tmp_path, 7, f=2, rounds=100)
    later = next_file(tmp_path, file, 60, add={7: NewPeer("127.0.0.1:9", one_more_key(tmp_path, 7)[1], range(7))})
    form = Format(file.run, 5, file.dtype)
    honest, liars = range(5), (5, 6)
    starts: list[Any] = []

    def watched(peer: Peer, alone: float, stop: Callable[[], bool]) -> Any:
        model = join(peer, alone, stop)
        starts.append((model, peer.rounds.letters.newest))
        return model

    monkeypatch.setattr(byzmesh.peers.node, "join", watched)
    with VirtualWorld(10, link) as world:

        def deceive(me: int) -> None:
            remotes = later.remotes(me)
            transport = world.open(me, "", load_keys(tmp_path / f"peer{me}.key"), remotes, form.size, print)
            while True:
                transport.receive(0.1)
                newest = max((members.latest[peer].peer.round for peer in honest if peer in members.latest), default=0)
                transport.send(bytes(form.encode(np.full(5, lie), me, newest + 1)))

        members = start_all(world, file, tmp_path, honest)
        for me in liars:
            world.start(lambda me=me: deceive(me))  # type: ignore[misc]
        members.reach(20, peers=honest)
        members.give(0, later.text)
        members.give(7, later.text)
        members.start(7)
        members.reach(100, peers=[*honest, 7])
    ((start, heard),) = starts
    known = np.stack([heard[me] for me in honest if me in heard])
    assert len(known) >= 3 and (start >= known.min(axis=0)).all() and (start <= known.max(axis=0)).all()
    assert len(heard) > len(known)  # a liar was among them
    assert np.abs(members.latest[7].model).max() < 10.0
