"""Which file is in force: the same one at all peers, whatever arrives in whatever order; never an older one again."""

from __future__ import annotations

import itertools

import pytest

import byzmesh.peers.epochs
from byzmesh.peers.epochs import Epochs, order
from byzmesh.peers.network_file import NetworkFile
from tests.peers.members import next_file, signed_network


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[NetworkFile]:
    """Epoch 0, epoch 1 from round 50, two rivals of epoch 2 from 80 and 60, epoch 3 from 70."""
    folder = tmp_path_factory.mktemp("files")
    zero = signed_network(folder, 4)
    one = next_file(folder, zero, 50, f=0)
    two, rival = next_file(folder, one, 80), next_file(folder, one, 60, "rival.yaml")
    return [zero, one, two, rival, next_file(folder, two, 70)]


def in_force_by_definition(known: list[NetworkFile], round: int) -> NetworkFile:
    return max((file for file in known if file.from_round <= round), key=order)


def test_all_orders_of_arrival_end_alike(files: list[NetworkFile]) -> None:
    zero, *later = files
    for arrival in itertools.permutations(later):
        epochs = Epochs(zero)
        for file in arrival:
            epochs.add(file)
        assert [order(file) for file in epochs.files] == sorted(order(file) for file in epochs.files)
        rounds = [file.from_round for file in epochs.files]
        assert rounds == sorted(set(rounds))
        for round in (0, 49, 50, 59, 60, 69, 70, 79, 80, 500):
            assert epochs.enter(round) is in_force_by_definition(files, round)


def test_what_arrives_while_rounds_pass_never_takes_a_peer_back(files: list[NetworkFile]) -> None:
    zero, *later = files
    for arrival in itertools.permutations(later):
        epochs, last = Epochs(zero), order(zero)
        for place, file in enumerate(arrival):
            before = [order(known) for known in epochs.files]
            new = epochs.add(file)
            assert new == ([order(known) for known in epochs.files] != before)
            now = order(epochs.enter(30 * place))
            assert now >= last
            last = now
        assert epochs.enter(100) is files[-1]
        assert not any(epochs.add(file) for file in files)


def test_rivals_of_one_epoch_are_ordered_and_tagged_apart(files: list[NetworkFile]) -> None:
    two, rival = files[2:4]
    assert two.epoch == rival.epoch and order(two) != order(rival)
    assert Epochs(two).tag != Epochs(rival).tag != 0


def test_a_peer_that_takes_what_came_last_would_be_found(
    files: list[NetworkFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: no order between epochs."""
    monkeypatch.setattr(byzmesh.peers.epochs, "order", lambda file: (0, bytes([files.index(file) * 37 % 5])))
    with pytest.raises(AssertionError):
        test_all_orders_of_arrival_end_alike(files)
