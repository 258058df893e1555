"""Epochs under kills, partitions and a liar who forges, replays and repeats files: invariants after every event."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzmesh.peers import network_file
from byzmesh.peers.changes import NewPeer, changed
from byzmesh.peers.epochs import Epochs, order
from byzmesh.peers.identity import Keys, load_keys, one_more_key
from byzmesh.peers.membership import Membership
from byzmesh.peers.network_file import NetworkFile, save_network
from byzmesh.peers.peer import Peer
from byzmesh.peers.signing import LARGEST_FILE, load_operator, new_operator, sign
from byzmesh.peers.virtual import VirtualWorld
from byzmesh.peers.wire import HEADER, Format, WireError, decode_file, encode_file
from tests.peers.members import Members, draw_keys, next_file, signed_network, start_all

HONEST, LIAR, JOINER = range(5), 5, 6
END = 28.0


def operators_files(folder: Path, seed: int) -> tuple[list[NetworkFile], list[list[int]]]:
    """The first file, then a key replaced, a peer more, another key replaced, a rival of that last epoch, and keys
    replaced in a round that nobody reaches; and whose disks each is put on: of a peer concerned, and of any other."""
    draw = random.Random(seed)
    first = signed_network(folder, 6, rounds=100_000, evaluate_every=100_000)
    a, b = draw.sample(HONEST, 2)
    one = next_file(folder, first, 15, keys={a: one_more_key(folder, a)[1]})
    new = NewPeer("127.0.0.1:9", one_more_key(folder, JOINER)[1], range(6))
    two = next_file(folder, one, 30, add={JOINER: new})
    key = one_more_key(folder, b)[1]
    three, rival = (next_file(folder, two, 45 + more, f"three{more}.yaml", keys={b: key}) for more in (0, 5))
    some = draw.sample([*HONEST, JOINER], draw.randint(1, 4))
    far = next_file(folder, three, 90_000, "far.yaml", keys={me: one_more_key(folder, me)[1] for me in some})
    whom = [list(HONEST), [a], [JOINER], [b], [b], some[:1]]
    return [first, one, two, three, rival, far], [[*some, draw.choice(HONEST)] for some in whom]


def forgeries(folder: Path, file: NetworkFile) -> list[bytes]:
    """What a liar makes of a file: a next epoch without the honest, signed by itself; damaged ones; nonsense."""
    path = folder / "forged.yaml"
    save_network(changed(file, 0, remove=[0]), path)
    new_operator(folder / "liar.key")
    forged = sign(path.read_bytes(), load_operator(folder / "liar.key"))
    later = file.text.replace(b"epoch: ", b"epoch: 9")
    return [forged, path.read_bytes(), later, file.text[:-3], file.text + b" ", b"", b"\xff" * 100]


def liar(world: VirtualWorld, files: list[NetworkFile], folder: Path, seed: int) -> Callable[[], None]:
    """Sends forged files, and true ones again and again, among lies about its model."""
    draw = random.Random(seed)
    first = files[0]
    form = Format(first.run, 5, first.dtype)
    forged = [text for number, file in enumerate(files[1:4]) for text in forgeries(_made(folder / f"f{number}"), file)]

    def work() -> None:
        keys = load_keys(folder / f"peer{LIAR}.key")
        current = first
        transport = world.open(
            LIAR, "", keys, first.remotes(LIAR), max(form.size, LARGEST_FILE + HEADER.size), lambda *_, **__: None
        )
        known = [first]
        while True:
            transport.receive(0.3)
            if world.time > 2.0 * len(known) and len(known) < len(files):
                known = files[: len(known) + 1]
                current = known[-1]
                transport.change("", keys, current.remotes(LIAR))
            for peer in current.remotes(LIAR):
                text = draw.choice(forged) if draw.random() < 0.5 else draw.choice(known).text
                transport.send(encode_file(text, first.run, LIAR, peer))
                if peer not in transport.world.transports or draw.random() < 0.2:
                    transport.disconnect(peer)
                    transport.connect(peer)
            transport.send(bytes(form.encode(np.full(5, draw.uniform(-9, 9)), LIAR, draw.choice([5, 1 << 40]))))

    return work


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


class Watch:
    """The invariants: only the operator's files, none before its round, no older one again, a trial of a later one for
    one round only, and honest peers stay linked."""

    def __init__(self, members: Members, files: list[NetworkFile]) -> None:
        self.members, self.texts = members, {file.text: file for file in files}
        self.newest: dict[int, NetworkFile] = {}
        self.joined: set[int] = set(HONEST)
        self.reached: dict[int, int] = {}
        self.looked: dict[int, Any] = {}

    def __call__(self) -> None:
        for me, node in self.members.latest.items():
            file, peer = node.file, node.peer
            if file is not (before := self.newest.get(me)):
                assert file.text in self.texts, f"{me} took up a file that the operator did not sign"
                assert before is None or file.epoch >= before.epoch, f"{me} went back to epoch {file.epoch}"
                self.newest[me] = file
            reached = self.reached[me] = max(self.reached.get(me, 0), peer.round)  # a checkpoint may be of before
            if me not in self.joined and self.members.said("joined", me):
                self.joined.add(me)
            if me in self.joined:
                assert file.from_round <= reached, f"{me} took up {file.epoch} in {reached}"
            followed = node.membership.followed
            if followed is not file:
                tried = self.members.said("epoch tried", me)[-1]
                now = followed.epoch, peer.rounds.round
                assert now == (tried["epoch"], tried["round"]), f"{me} goes on with a trial"
            if self.looked.get(me) != (peer, followed.epoch, reached):
                self.looked[me] = peer, followed.epoch, reached
                assert peer.neighbours == sorted(followed.remotes(me)) and peer.remotes == followed.remotes(me)
                assert peer.transport.keys.public == followed.entry(me).public_key  # type: ignore[attr-defined]
            assert not peer.cut_off.times.keys() - {LIAR}, f"{me} cut off {peer.cut_off.times}"
            for other in peer.neighbours:
                assert other == LIAR or not peer.tally.refused[other], (
                    f"{me} refused {other}: {peer.tally.refused[other]}"
                )


def play(folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw_keys(monkeypatch, seed)
    draw = random.Random(seed)
    files, disks = operators_files(folder, seed)
    apart: set[int] = set()

    def link(random: random.Random, sender: int, receiver: int, now: float) -> float | None:
        return None if (sender in apart) != (receiver in apart) else random.uniform(0.1, 0.2)

    with VirtualWorld(seed, link) as world:
        members = start_all(world, files[0], folder, HONEST)
        watch = Watch(members, files)
        world.checks.append(watch)
        world.start(liar(world, files, folder, seed))

        def split(whom: list[int]) -> None:
            apart.symmetric_difference_update(whom)

        def again(me: int) -> None:
            if members.running[me].ended:
                members.start(me)

        for begin, longest in ((2.0, 2.0), (6.0, 2.0), (10.0, 2.0), (15.0, 5.0), (21.0, 5.0)):
            victim, pair = draw.choice(HONEST), draw.sample([*HONEST, JOINER], 2)
            at, seconds = begin + draw.uniform(0.0, 3.0), draw.uniform(0.2, 2.0)
            world.at(at, lambda victim=victim: members.kill(victim))  # type: ignore[misc]
            world.at(at + seconds, lambda victim=victim: again(victim))  # type: ignore[misc]
            at, seconds = begin + draw.uniform(0.0, 3.0), draw.uniform(0.2, longest)
            world.at(at, lambda pair=pair: split(pair))  # type: ignore[misc]
            world.at(at + seconds, lambda pair=pair: split(pair))  # type: ignore[misc]
        for epoch, (file, whom) in enumerate(zip(files[1:], disks[1:])):
            for me in whom:
                # before its round, or after it
                at = 2.5 * (epoch + 1) + draw.uniform(0.0, 2.5)
                world.at(at, lambda me=me, file=file: members.give(me, file.text))  # type: ignore[misc]
        world.at(7.5, lambda: members.give(JOINER, files[2].text))
        world.at(7.6, lambda: members.start(JOINER))  # type: ignore[arg-type]
        world.run(END + 4.0)
        everybody = [*HONEST, JOINER]
        before = {me: members.latest[me].peer.round for me in everybody}
        world.run(world.time + 4.0)
        after = {me: members.latest[me].peer.round for me in everybody}
        newest = max(files[3:5], key=order)
        assert {me: members.latest[me].file.text for me in everybody} == dict.fromkeys(everybody, newest.text)
        assert min(after[me] - before[me] for me in everybody) >= 10, f"no recovery: {before} -> {after}"
        assert max(after.values()) - min(after.values()) <= 2, f"apart: {after}"


@pytest.mark.parametrize("seed", range(2))
def test_epochs_under_faults_and_forgeries(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    play(tmp_path, seed, monkeypatch)


def test_the_seed_determines_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for name in ("one", "two"):
        draw_keys(monkeypatch, 7)
        made.append(operators_files(tmp_path / name, 7))
    assert [file.text for file in made[0][0]] == [file.text for file in made[1][0]] and made[0][1] == made[1][1]


def test_a_signature_that_is_not_checked_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_file, "verify", lambda text, operator: None)
    with pytest.raises(AssertionError, match="did not sign"):
        play(tmp_path, 0, monkeypatch)


def test_a_file_that_wins_because_it_came_last_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def add(epochs: Epochs, file: NetworkFile) -> bool:
        epochs.files = [file]
        return True

    monkeypatch.setattr(Epochs, "add", add)
    with pytest.raises(AssertionError, match=r"went back to epoch|took up \d in"):
        play(tmp_path, 0, monkeypatch)


def test_a_file_taken_up_because_nobody_is_heard_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What peers once did: a trial that is for good."""
    follow = Membership._follow

    def for_good(member: Membership, peer: Peer, file: NetworkFile, keys: Keys) -> None:
        if file is not member.file:
            member.epochs.files.remove(member.file)
            member.file, member.keys = file, keys
        follow(member, peer, file, keys)

    monkeypatch.setattr(Membership, "_follow", for_good)
    with pytest.raises(AssertionError, match=r"took up \d in"):
        play(tmp_path, 0, monkeypatch)


def test_frames_that_are_no_files() -> None:
    frame = encode_file(b"text", 7, 3, 4)
    for wrong, reason in (
        (frame[:-1], "size"),
        (frame[:4] + b"\x01" + frame[5:], "version"),
        (frame[:6] + b"\x09" + frame[7:], "run"),
        (frame[:16] + b"\x09" + frame[17:], "run"),
    ):
        with pytest.raises(WireError) as failure:
            decode_file(wrong, 7, 3)
        assert failure.value.reason == reason
