"""Rounds without a clock: which messages count, how long to wait, and what liars cannot do."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byzmesh.errors import ConfigError
from byzmesh.peers.budget import BURST, Budget
from byzmesh.peers.letters import APART
from byzmesh.peers.patience import Patience
from byzmesh.peers.rounds import SILENT_AFTER, WINDOW, Rounds

V = np.zeros(1)
QUICK = Patience(timeout=5.0, start=30.0, grace=0.01, start_grace=1.0)


def running(neighbours: int, f: int, patience: Patience = QUICK, apart: float = 1.0) -> Rounds:
    """After twenty rounds in which everybody spoke at once, the last of them at time 0."""
    rounds = Rounds(range(neighbours), f, patience)
    for number in range(20):
        now = apart * (number - 19)
        rounds.begin(number, now)
        for neighbour in range(neighbours):
            rounds.offer(neighbour, number, V, now)
        rounds.gather(1)
    return rounds


def begin(rounds: Rounds, now: float) -> int:
    rounds.begin(rounds.round + 1, now)
    return rounds.round


def ahead(rounds: Rounds) -> int | None:
    return rounds.ahead_of(rounds.round)


def test_all_arrived_ends_the_round_at_once() -> None:
    rounds = running(4, f=1)
    number = begin(rounds, 10.0)
    for neighbour in range(4):
        assert not rounds.ready(10.0)
        rounds.offer(neighbour, number, V, 10.0)
    assert rounds.ready(10.0)


def test_all_but_two_f_start_the_grace_period_a_third_of_the_usual_round() -> None:
    rounds = running(7, f=2)
    assert rounds.usual == 1.0
    number = begin(rounds, 1.0)
    for neighbour in range(3):
        assert rounds.deadline == 6.0
        rounds.offer(neighbour, number, V, 1.1)
    assert rounds.deadline == pytest.approx(1.1 + 1 / 3)
    assert not rounds.ready(1.43)
    assert rounds.ready(1.44)


def test_one_stall_does_not_lengthen_the_grace_period() -> None:
    rounds = running(4, f=1)
    for turn in range(30):
        number = begin(rounds, 10.0 + 0.01 * turn + (60.0 if turn > 20 else 0.0))
        for neighbour in range(4):
            rounds.offer(neighbour, number, V, rounds.deadline - 4.9)
        rounds.gather(1)
    assert rounds.usual == pytest.approx(0.01)


def test_fewer_than_needed_wait_for_the_timeout() -> None:
    rounds = running(4, f=1)
    number = begin(rounds, 5.0)
    rounds.offer(0, number, V, 5.1)
    assert not rounds.ready(9.9)
    assert rounds.ready(10.0)


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
    ends = [play(rounds, 4.0 + turn, [0, 1, 2], babble) for turn in range(SILENT_AFTER + 2)]
    assert ends == [False] * SILENT_AFTER + [True] * 2
    assert rounds.expected == [0, 1, 2]
    play(rounds, 12.0, [0, 1, 2, 4])
    assert rounds.expected == [0, 1, 2, 4]


def test_liars_that_claim_to_be_far_ahead_are_not_waited_for() -> None:
    rounds = running(5, f=2)
    number = begin(rounds, 10.0)
    for liar in (3, 4):
        rounds.offer(liar, number + 1000, V, 10.0)
    for neighbour in (0, 1, 2):
        assert not rounds.ready(10.0)
        rounds.offer(neighbour, number, V, 10.0)
    assert rounds.ready(10.0)


def test_liars_that_claimed_a_far_round_and_went_silent_do_not_stand_for_honest_neighbours() -> None:
    """They have answered for ever, and are not heard; two others are dead. Four honest answers are d - 3 f."""
    rounds = running(10, f=2)
    for liar in (8, 9):
        rounds.offer(liar, 1 << 40, V, 0.0)
    for turn in range(1, 30):
        number = begin(rounds, 1.0 * turn)
        for neighbour in range(6):
            rounds.offer(neighbour, number, V, 1.0 * turn)
        rounds.gather(1)
    number = begin(rounds, 30.0)
    for neighbour in range(4):
        assert rounds.deadline == 35.0
        rounds.offer(neighbour, number, V, 30.1)
    assert rounds.deadline == pytest.approx(30.1 + 1 / 3)


def test_one_dead_neighbour_costs_a_peer_without_tolerance_one_timeout() -> None:
    rounds = running(3, f=0, apart=0.1)
    now, waits = 0.1, []
    for _ in range(6):
        number = begin(rounds, now)
        for neighbour in (0, 1):
            rounds.offer(neighbour, number, V, now + 0.01)
        until = now + 0.01 if rounds.ready(now + 0.01) else rounds.deadline
        assert rounds.ready(until)
        rounds.gather(1)
        waits.append(until - now)
        now = until + 0.1
    assert waits[0] == 5.0 and max(waits[1:3]) < 0.05 and max(waits[3:]) < 0.02


@pytest.mark.parametrize(("neighbours", "f"), [(7, 2), (5, 2), (3, 1)])
def test_liars_alone_cannot_hurry_a_peer(neighbours: int, f: int) -> None:
    """Row 10 of issue 18: beside f talkative liars a lone honest peer ends one round per timeout."""
    rounds = Rounds(range(neighbours), f, QUICK)
    now, count = 0.0, 0
    while now < 90.0:
        rounds.begin(count, now)
        for liar in range(f):
            rounds.offer(liar, count, V, now)
        assert rounds.deadline >= now + 5.0 and not rounds.ready(rounds.deadline - 0.001)
        now = rounds.deadline
        rounds.gather(1)
        count += 1
    assert count <= 1 + (90 - 30) / 5


@pytest.mark.parametrize(("neighbours", "f", "enough"), [(1, 1, 1), (2, 1, 1), (4, 2, 2), (4, 3, 2)])
def test_with_fewer_than_2_f_plus_1_neighbours_more_than_half_of_them_may_die(
    neighbours: int, f: int, enough: int
) -> None:
    """Waiting then bears fewer liars than f, and liars may hurry a peer: with f + 1 answers nobody could go on."""
    rounds = running(neighbours, f, apart=0.01)
    now = 10.0
    for turn in range(SILENT_AFTER + 2):
        at_once = play(rounds, now + turn, list(range(enough)))
    assert at_once
    assert not play(rounds, now + 10.0, list(range(enough - 1)))


def test_a_round_left_behind_counts_as_missed_and_does_not_start_the_time_anew() -> None:
    """Row 6 of issue 18: two dead neighbours must not freeze a peer that is moved up again and again."""
    rounds = running(5, f=1)
    begin(rounds, 10.0)
    for turn in range(SILENT_AFTER):
        now = 10.0 + turn
        for neighbour in (0, 1, 2):
            rounds.offer(neighbour, rounds.round + 2, V, now)
        target = ahead(rounds)
        assert target is not None
        rounds.begin(target, now)
        assert rounds.deadline <= 15.0
    assert rounds.expected == [0, 1, 2] and rounds.ready(12.0)


def test_rounds_passed_over_while_waiting_share_the_time() -> None:
    rounds = running(5, f=1)
    begin(rounds, 10.0)
    for neighbour in (0, 1, 2):
        rounds.offer(neighbour, rounds.round + 4, V, 11.0)
    target = ahead(rounds)
    assert target == rounds.round + 4
    rounds.begin(target, 11.0)
    rounds.gather(1)
    begin(rounds, 12.0)
    assert list(rounds.lengths)[-5:] == [0.4] * 5


def test_moving_up_by_a_million_million_rounds_takes_no_memory() -> None:
    """With f = 0 a single neighbour can say so."""
    rounds = running(3, f=0)
    begin(rounds, 10.0)
    rounds.begin(1 << 40, 10.5)
    rounds.gather(1)
    begin(rounds, 11.0)
    assert len(rounds.lengths) == len(rounds._skipped) == WINDOW


def test_a_lonely_peer_waits_for_the_timeout_every_round() -> None:
    rounds = running(3, f=1)
    for late in range(SILENT_AFTER + 2):
        begin(rounds, 10.0 + 10.0 * late)
        rounds.gather(1)
    begin(rounds, 100.0)
    assert not rounds.ready(104.9)
    assert rounds.ready(105.1)


def test_a_late_message_counts_once_unless_there_is_a_newer_one() -> None:
    rounds = running(3, f=1)
    number = begin(rounds, 10.0)
    rounds.gather(1)
    begin(rounds, 11.0)
    assert rounds.offer(0, number, V + 1, 11.0) == "late"
    assert rounds.offer(1, number, V + 1, 11.0) == "late"
    assert rounds.offer(1, number + 1, V + 2, 11.0) == "current"
    messages, present = rounds.gather(1)
    assert present.tolist() == [True, True, False] and messages[:2, 0].tolist() == [1.0, 2.0]
    begin(rounds, 12.0)
    assert rounds.offer(0, number, V + 1, 12.0) == "repeated"
    assert rounds.offer(1, number, V + 1, 12.0) == "repeated"
    assert rounds.gather(1)[1].tolist() == [False] * 3
    assert rounds.verdicts[2]["silent"] == 3 and rounds.verdicts[0]["silent"] == 2


def test_early_messages_wait_for_their_round_and_used_ones_are_dropped() -> None:
    rounds = running(2, f=0)
    number = begin(rounds, 10.0)
    assert rounds.offer(0, number + 1, V + 1, 10.0) == "early"
    assert rounds.offer(0, number, V, 10.0) == "current"
    assert rounds.offer(0, number, V + 9, 10.0) == "repeated"
    assert rounds.offer(0, number - 1, V, 10.0) == "repeated"
    rounds.gather(1)
    begin(rounds, 11.0)
    messages, present = rounds.gather(1)
    assert messages[0, 0] == 1.0 and present.tolist() == [True, False]


def test_early_messages_of_a_round_never_reached_count_once_the_oldest_first() -> None:
    rounds = running(3, f=1)
    number = begin(rounds, 10.0)
    for ahead_by in (5, 6, 7):  # the two newest are kept
        assert rounds.offer(0, number + ahead_by, V + ahead_by, 10.0) == "early"
    counted = []
    for turn in range(3):
        messages, present = rounds.gather(1)
        counted.append(messages[0, 0] if present[0] else None)
        begin(rounds, 11.0 + turn)
    assert counted == [6.0, 7.0, None] and rounds.verdicts[0]["silent"] == 1
    assert rounds.offer(0, number + 6, V, 14.0) == "repeated"
    assert rounds.offer(0, number + 8, V, 14.0) == "early"


@pytest.mark.parametrize("seed", range(20))
def test_whoever_sent_something_new_counts_and_nothing_counts_twice(seed: int) -> None:
    """Neighbours ahead, behind, and that jump; each sends rounds that grow, as honest ones do."""
    draw = random.Random(seed)
    rounds, number = Rounds(range(4), f=1, patience=QUICK), 0
    newest, counted = [-1] * 4, [-1] * 4
    for turn in range(60):
        rounds.begin(number, float(turn))
        for j in range(4):
            for _ in range(draw.choice([0, 1, 1, 2, 6])):
                newest[j] += draw.choice([1, 1, 1, 2, 9])
                rounds.offer(j, newest[j], V + newest[j], float(turn))
        messages, present = rounds.gather(1)
        for j in range(4):
            assert present[j] == (newest[j] > counted[j]), (turn, j)
            if present[j]:
                assert counted[j] < messages[j, 0] <= newest[j]
                counted[j] = int(messages[j, 0])
        number += draw.choice([1, 1, 1, 2, 5])


def test_the_grace_period_of_a_peer_that_is_left_behind_is_that_of_the_others() -> None:
    """It works four rounds long, and moves up by four each time."""
    rounds = running(5, f=1, apart=0.1)
    for turn in range(80):
        rounds.begin(23 + 4 * turn, 0.4 * (turn + 1))
        rounds.gather(1)
    assert rounds.usual == pytest.approx(0.4) and rounds.grace == pytest.approx(0.1 / 3)


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
    assert present.tolist() == [True, True, True, False, False] and messages[2, 0] == 5.0


@pytest.mark.parametrize("beyond", [1, 2])
def test_beyond_the_last_round_only_more_than_f_neighbours_count(beyond: int) -> None:
    """They are all heard and have answered; liars alone, f = 1, move nobody, and what they say is not used."""
    rounds = Rounds([3, 5, 8, 9], f=1, patience=QUICK)
    rounds.last = 99
    rounds.begin(40, now=0.0)
    for neighbour in (3, 5, 8, 9):
        far = neighbour in (3, 5)[:beyond]
        rounds.offer(neighbour, 150 if far else 40, np.full(1, float(neighbour)), now=0.1)
    assert rounds.ready(0.1) and rounds.heard[3] == 0.1
    assert rounds.ahead_of(40) == (None if beyond == 1 else 99)
    if beyond == 2:
        rounds.begin(99, now=0.2)
        assert rounds.outrun and rounds.ahead_of(99) is None
    messages, came = rounds.gather(1)
    assert came.tolist() == [beyond == 2, True, True, True]
    assert messages[came, 0].tolist() == [3.0, 5.0, 8.0, 9.0][-came.sum() :]


def test_what_was_said_of_a_round_beyond_the_last_is_not_used_later_either() -> None:
    """A liar that names such a round first, and this one then."""
    rounds = Rounds([3, 5, 8], f=1, patience=QUICK)
    rounds.last = 99
    rounds.begin(40, now=0.0)
    for round in (150, 40):
        rounds.offer(3, round, np.full(1, float(round)), now=0.1)
    messages, came = rounds.gather(1)
    assert came[0] and messages[0, 0] == 40.0
    rounds.begin(41, now=0.2)
    assert not rounds.gather(1)[1].any()


def test_who_is_due_is_not_asked_of_rounds_far_away() -> None:
    """To find it out takes long on some networks that change."""
    asked: set[int] = set()

    def due(round: int) -> list[int]:
        asked.add(round)
        return [3, 5]

    rounds = Rounds([3, 5], 0, QUICK, due)
    rounds.begin(1000, now=0.0)
    for round in range(2000):
        rounds.offer(3, round, np.zeros(1), now=0.1)
    assert asked == set(range(1000 - APART, 1000 + APART + 1))


def test_after_moving_up_both_messages_of_a_neighbour_that_is_one_round_further_are_there() -> None:
    rounds = running(3, f=1)
    here = begin(rounds, 10.0)
    for number in (here + 60, here + 61, here + 62):
        rounds.offer(0, number, V + number, 10.0)
    for neighbour in (1, 2):
        rounds.offer(neighbour, here + 61, V, 10.0)
    assert ahead(rounds) == here + 61
    for number in (here + 61, here + 62):
        rounds.begin(number, 10.0)
        messages, present = rounds.gather(1)
        assert present[0] and messages[0, 0] == number


offers = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 1 << 62), st.floats(0, 3)), max_size=60)


@given(offers, st.lists(st.integers(0, 20), min_size=5, max_size=5), st.integers(0, 20))
@settings(max_examples=80, deadline=None)
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
    target = ahead(rounds)
    assert target is None or own + 1 < target <= max(honest)
    assert all(len(held) <= 4 for held in rounds.letters.held.values())
    assert rounds.deadline <= 30.0


@pytest.mark.parametrize("name", ["timeout", "start", "grace", "start_grace"])
def test_bad_patience(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        Patience(**{name: 0.0})


def test_budget_grows_with_honest_rounds_and_not_with_claims() -> None:
    budget = Budget([1], now=0.0, size=1 << 20)
    spent = sum(budget.spend(1, round=number, now=0.0) for number in range(5000))
    assert spent == 5000
    assert sum(budget.spend(1, round=5000, now=0.0) for _ in range(5000)) <= BURST + 2


def defined(rounds: Rounds, now: float) -> tuple[int, float, bool]:
    """(trusted, deadline, ready) straight from the definition, of what a round has seen."""
    newest = sorted(rounds.seen.values(), reverse=True)
    answered = sorted(when for j, when in rounds._answered.items())
    enough = rounds._needed is not None and len(answered) >= rounds._needed
    limit = rounds._started + (rounds.patience.start if rounds._begun <= 1 else rounds.patience.timeout)
    deadline = min(limit, answered[(rounds._needed or 1) - 1] + rounds.grace) if enough else limit
    missing = [j for j in rounds.neighbours if j not in rounds._answered and rounds._missed[j] < SILENT_AFTER]
    return newest[rounds.f], deadline, now >= deadline or (enough and not missing)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_kept_up_to_date_is_what_is_defined(seed: int) -> None:
    """Messages of any round in any order, back and forth, jumps and silences."""
    draw = random.Random(seed)
    rounds, now, number = Rounds(range(7), f=draw.choice([0, 1, 2]), patience=Patience(5.0, 5.0, 0.01, 0.5)), 0.0, 0
    for _ in range(30):
        rounds.begin(number, now)
        for _ in range(draw.randint(0, 12)):
            now += draw.choice([0.0, 0.001, 0.1, 7.0 if draw.random() < 0.1 else 0.01])
            rounds.offer(draw.randrange(7), max(0, number + draw.choice([-9, -1, 0, 0, 0, 1, 2, 40])), V, now)
            assert (rounds.trusted, rounds.deadline, rounds.ready(now)) == defined(rounds, now)
            if rounds.ahead_of(number) is not None and draw.random() < 0.5:
                number = rounds.ahead_of(number) or number
                rounds.begin(number, now)
                assert (rounds.trusted, rounds.deadline, rounds.ready(now)) == defined(rounds, now)
        rounds.gather(1)
        number += 1
