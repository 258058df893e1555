"""Peers that are behind while the others are beyond the last round of their file: `rounds` differs, or was raised.

In virtual time, five peers with f = 1; whoever has more rounds goes on and on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from byzmesh.errors import ConfigError
from byzmesh.peers.changes import NewPeer, sign_file
from byzmesh.peers.identity import one_more_key
from byzmesh.peers.network_file import NetworkFile, network_file, save_network
from byzmesh.peers.node import Node
from byzmesh.peers.virtual import VirtualWorld
from tests.peers.members import Members, next_file, signed_network, spread, start_all
from tests.peers.networks import make_network
from tests.peers.worlds import Nodes

FIRST = 100
MANY = 100_000


def link(*_: Any) -> float:
    return 0.05


def raised(folder: Path, former: NetworkFile, from_round: int) -> NetworkFile:
    """The next epoch, with more rounds and the same links."""
    contents = former.model_dump(mode="json", exclude_unset=True, exclude={"signature"})
    contents |= {"epoch": former.epoch + 1, "from_round": from_round, "rounds": MANY}
    save_network(network_file(contents, folder), folder / "raised.yaml")
    (folder / "former.yaml").write_bytes(former.text)
    return sign_file(folder / "raised.yaml", folder / "operator.key", folder / "former.yaml")


def assert_blameless(node: Node) -> None:
    """This peer holds nothing against its neighbours but what the rule ignored."""
    assert not any(node.peer.tally.refused.values()) and not node.peer.cut_off.times


@pytest.mark.parametrize("channel", [[], [{"name": "top-k", "fraction": 0.5}]])
def test_who_has_fewer_rounds_and_is_late_ends_in_its_last_with_what_the_others_have(
    tmp_path: Path, channel: list[Any]
) -> None:
    """Peer 4 comes when the others are far beyond its last round."""
    spec: dict[str, Any] = {
        "topology": {"name": "complete", "n": 5},
        "rule": "trimean",
        "f": 1,
        "problem": {"name": "quadratic", "dimension": 5, "targets": "normal"},
        "shares": 5,
        "evaluate_every": MANY,
        "channel": channel,
    }
    long = make_network(tmp_path, 5, rounds=MANY, **spec)
    short = network_file(long.model_dump(mode="json", exclude_unset=True) | {"rounds": FIRST}, tmp_path)
    with VirtualWorld(1, link) as world:
        nodes = Nodes(world, long, tmp_path, tmp_path / "out")
        for me in range(4):
            nodes.start(me)
        world.run(30.0)
        assert nodes.latest[0].peer.round > FIRST + 20
        nodes.file = short
        late = nodes.start(4)
        world.run(60.0, done=lambda: late.ended)
        node = nodes.latest[4]
        assert late.ended and late.error is None and node.peer.round == FIRST
        assert_blameless(node)
        assert all(node.peer.tally.used) and [facts["to"] for facts in nodes.said("moved up", 4)] == [FIRST - 1]


def raise_while_away(folder: Path, world: VirtualWorld, knows: bool) -> Members:
    """Peer 4 is down while the others take up a file with more rounds, and until they are beyond the former last."""
    file = signed_network(folder, 5, rounds=FIRST, evaluate_every=MANY)
    more = raised(folder, file, FIRST - 10)
    members = start_all(world, file, folder)
    members.reach(20)
    for me in range(5 if knows else 0):
        members.give(me, more.text)
    members.reach(70)
    members.kill(4)
    members.give(0, more.text)
    members.reach(FIRST + 50, peers=range(4))
    return members


@pytest.mark.parametrize("knows", [True, False])
def test_who_was_down_while_rounds_were_raised_goes_on_with_the_others(tmp_path: Path, knows: bool) -> None:
    with VirtualWorld(1, link) as world:
        members = raise_while_away(tmp_path, world, knows)
        assert members.latest[4].peer.membership is not None
        assert (len(members.latest[4].peer.membership.epochs.files) > 1) == knows
        members.start(4)
        world.run(world.time + 10.0)
        rounds = [node.peer.round for node in members.latest.values()]
        assert max(rounds) - min(rounds) <= 1 and min(rounds) > 2 * FIRST and members.epochs()[4] == 1
        assert_blameless(members.latest[4])


def test_who_joins_by_a_file_of_fewer_rounds_gets_the_newer_one(tmp_path: Path) -> None:
    """Peer 5 starts by epoch 1, the others are beyond its last round by epoch 2."""
    file = signed_network(tmp_path, 5, rounds=FIRST, evaluate_every=MANY)
    public = one_more_key(tmp_path, 5)[1]
    one = next_file(tmp_path, file, 50, add={5: NewPeer("127.0.0.1:9", public, [0, 1, 2, 3])})
    two = raised(tmp_path, one, FIRST - 10)
    with VirtualWorld(1, link) as world:
        members = start_all(world, file, tmp_path)
        members.reach(20)
        members.give(0, one.text)
        members.reach(60)
        members.give(0, two.text)
        members.reach(FIRST + 50)
        members.give(5, one.text)
        members.start(5)
        world.run(world.time + 10.0)
        assert members.latest[5].peer.round > 2 * FIRST and members.epochs()[5] == 2
        assert spread(members, range(6)) < 5.0
        assert_blameless(members.latest[5])


@pytest.mark.parametrize("again", [False, True])
def test_more_rounds_from_where_the_former_ones_end(tmp_path: Path, again: bool) -> None:
    """Given before the end, or when all have ended and are started again."""
    file = signed_network(tmp_path, 4, rounds=FIRST, evaluate_every=MANY)
    more = raised(tmp_path, file, FIRST)
    with VirtualWorld(1, link) as world:
        members = start_all(world, file, tmp_path)
        members.reach(20)
        if again:
            world.run(60.0)
            assert all(process.ended for process in members.running.values())
        for me in range(4):
            members.give(me, more.text)
            if again:
                members.start(me)
        members.reach(FIRST + 50)
        assert set(members.epochs().values()) == {1}


def test_a_file_that_begins_after_the_end_is_not_signed(tmp_path: Path) -> None:
    file = signed_network(tmp_path, 4, rounds=FIRST)
    with pytest.raises(ConfigError, match=f"from_round must be at most {FIRST}, .* got {FIRST + 1}"):
        raised(tmp_path, file, FIRST + 1)
