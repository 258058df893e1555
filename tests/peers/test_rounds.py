"""Rounds without a clock: which messages count, how long to wait, and what liars cannot do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byzmesh.errors import ConfigError
from byzmesh.peers.budget import BURST, Budget
from byzmesh.peers.rounds import SILENT_AFTER, Patience, Rounds

V = np.zeros(1)
QUICK = Patience(timeout=5.0, start=30.0, grace=0.01, start_grace=1.0)


def running(neighbours: int, f: int, patience: Patience = QUICK) -> Rounds:
    """Past the first rounds, in which everybody spoke at once."""
    rounds = Rounds(range(neighbours), f, patience)
    for number in range(SILENT_AFTER + 1):
        rounds.begin(number, now=float(number))
        for neighbour in range(neighbours):
            rounds.offer(neighbour, number, V, now=float(number))
        rounds.gather(1)
    return rounds


def begin(rounds: Rounds, now: float) -> int:
    rounds.begin(rounds.round + 1, now)
    return rounds.round


def ahead(rounds: Rounds) -> int | None:
    return rounds.ahead  # looked up anew: offers change it


def test_all_arrived_ends_the_round_at_once() -> None:
    rounds = running(4, f=1)
    number = begin(rounds, 10.0)
    for neighbour in range(4):
        assert not rounds.ready(10.0)
        rounds.offer(neighbour, number, V, 10.0)
    assert rounds.ready(10.0)


def test_quorum_waits_for_the_grace_period_and_no_longer() -> None:
    rounds = running(4, f=1)
    number = begin(rounds, 10.0)
    for neighbour in range(3):
        rounds.offer(neighbour, number, V, 10.1)
    assert not rounds.ready(10.105)
    assert rounds.ready(10.111)


def test_fewer_than_a_quorum_wait_for_the_timeout() -> None:
    rounds = running(4, f=1)
    number = begin(rounds, 10.0)
    for neighbour in range(2):
        rounds.offer(neighbour, number, V, 10.1)
    assert not rounds.ready(14.9)
    assert rounds.ready(15.0)


def play(rounds: Rounds, now: float, arrive: list[int], babble: Sequence[int] = ()) -> bool:
    """One round in which these arrive at once and those send an old message; whether it then ends at once."""
    number = begin(rounds, now)
    for neighbour in arrive:
        rounds.offer(neighbour, number, V, now)
    for neighbour in babble:
        rounds.offer(neighbour, 0, V, now)
    at_once = rounds.ready(now)
    rounds.gather(1)
    return at_once


@pytest.mark.parametrize("babble", [[], [3, 4]])
def test_silent_or_babbling_liars_are_soon_not_waited_for(babble: list[int]) -> None:
    rounds = running(5, f=2)
    ends = [play(rounds, 10.0 + turn, [0, 1, 2], babble) for turn in range(SILENT_AFTER + 2)]
    assert ends == [False] * SILENT_AFTER + [True] * 2
    assert rounds.expected == [0, 1, 2]
    play(rounds, 30.0, [0, 1, 2, 4])
    assert rounds.expected == [0, 1, 2, 4]


def test_one_dead_neighbour_does_not_stall_a_peer_without_tolerance() -> None:
    rounds = running(3, f=0)
    ends = [play(rounds, 10.0 + turn, [0, 1]) for turn in range(SILENT_AFTER + 1)]
    assert ends[-1] and not ends[0]


def test_a_peer_ahead_of_most_who_speak_waits_for_them() -> None:
    rounds = running(6, f=1)
    ends = [play(rounds, 10.0 + turn, [0, 1, 2, 3], [4, 5]) for turn in range(10)]
    assert not any(ends)
    assert rounds.deadline >= 19.0 + 5.0


def test_a_lonely_peer_waits_for_the_timeout_every_round() -> None:
    rounds = running(3, f=1)
    for late in range(SILENT_AFTER + 2):
        begin(rounds, 10.0 * late)
    assert not rounds.ready(10.0 * late + 4.9)
    assert rounds.ready(10.0 * late + 5.1)


def test_early_messages_wait_for_their_round_and_late_ones_are_dropped() -> None:
    rounds = running(2, f=0)
    number = begin(rounds, 10.0)
    assert rounds.offer(0, number + 1, V + 1, 10.0) == "early"
    assert rounds.offer(0, number, V, 10.0) == "current"
    assert rounds.offer(0, number, V + 9, 10.0) == "repeated"
    assert rounds.offer(0, number - 1, V, 10.0) == "late"
    rounds.gather(1)
    begin(rounds, 11.0)
    messages, present = rounds.gather(1)
    assert messages[0, 0] == 1.0 and present.tolist() == [True, False]


def test_moves_up_only_when_more_than_f_neighbours_are_far_ahead() -> None:
    rounds = running(5, f=2)
    here = begin(rounds, 10.0)
    for liar in (0, 1):
        rounds.offer(liar, here + 1000, V, 10.0)
    assert ahead(rounds) is None
    rounds.offer(2, here + 1, V, 10.0)
    assert ahead(rounds) is None
    rounds.offer(2, here + 7, V + 5, 10.0)
    assert ahead(rounds) == here + 7
    rounds.begin(here + 7, 10.0)
    messages, present = rounds.gather(1)
    assert present.tolist() == [False, False, True, False, False] and messages[2, 0] == 5.0


def test_after_moving_up_both_messages_of_a_neighbour_that_is_one_round_further_are_there() -> None:
    rounds = running(3, f=1)
    here = begin(rounds, 10.0)
    for number in (here + 60, here + 61, here + 62):
        rounds.offer(0, number, V + number, 10.0)
    for neighbour in (1, 2):
        rounds.offer(neighbour, here + 61, V, 10.0)
    assert rounds.ahead == here + 61
    for number in (here + 61, here + 62):
        rounds.begin(number, 10.0)
        messages, present = rounds.gather(1)
        assert present[0] and messages[0, 0] == number


def test_one_broken_round_does_not_lengthen_the_grace_period() -> None:
    rounds = running(4, f=1)
    for turn in range(30):
        number = begin(rounds, 10.0 * turn)
        for place, neighbour in enumerate(range(3)):
            rounds.offer(neighbour, number, V, 10.0 * turn + (4.0 if turn == 20 else 0.001) * place)
        rounds.gather(1)
    assert rounds.grace == 0.01


offers = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 1 << 62), st.floats(0, 3)), max_size=60)


@given(offers, st.lists(st.integers(0, 20), min_size=5, max_size=5), st.integers(0, 20))
@settings(max_examples=200, deadline=None)
def test_two_liars_cannot_steer_seven_neighbours(
    lies: list[tuple[int, int, float]], honest: list[int], own: int
) -> None:
    """Neighbours 0 and 1 lie; the other five are in rounds `honest`."""
    rounds = Rounds(range(7), 2, QUICK)
    rounds.begin(own, 0.0)
    for place, number in enumerate(honest):
        rounds.offer(2 + place, number, V, 0.0)
    for sender, number, when in lies:
        rounds.offer(sender % 2, number, V, when)
    assert rounds.trusted <= max(honest)
    assert rounds.trusted >= sorted(honest)[2]
    assert rounds.ahead is None or own + 1 < rounds.ahead <= max(honest)
    assert all(len(held) <= 4 for held in rounds._held.values())
    assert rounds.deadline <= 30.0


@given(st.lists(st.floats(0.0, 0.2), min_size=5, max_size=5), st.lists(st.floats(0.0, 4.0), min_size=2, max_size=2))
@settings(max_examples=100, deadline=None)
def test_liars_cannot_stretch_the_grace_period(honest: list[float], lying: list[float]) -> None:
    rounds = running(7, f=2)
    for turn in range(20):
        now = 100.0 * (turn + 1)
        number = begin(rounds, now)
        arrivals = sorted(
            [(now + t, 2 + i) for i, t in enumerate(honest)] + [(now + t, i) for i, t in enumerate(lying)]
        )
        for when, sender in arrivals:
            if rounds.ready(when):
                break
            rounds.offer(sender, number, V, when)
        rounds.gather(1)
    assert rounds.spread <= max(honest) + 1e-6
    assert rounds.grace <= max(0.01, 2 * max(honest) + 1e-5)


@pytest.mark.parametrize("name", ["timeout", "start", "grace", "start_grace"])
def test_bad_patience(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        Patience(**{name: 0.0})


def test_budget_grows_with_honest_rounds_and_not_with_claims() -> None:
    budget = Budget([1], now=0.0)
    spent = sum(budget.spend(1, round=number, now=0.0) for number in range(5000))
    assert spent == 5000
    assert sum(budget.spend(1, round=5000, now=0.0) for _ in range(5000)) <= BURST + 2
