"""Each process against its definition and its frequencies over many rounds."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import comb, pi, sqrt
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.errors import ConfigError
from byzmesh.networks import Links
from byzmesh.networks.processes import Meetings, processes
from byzmesh.types import Integers

NET = bm.network("erdos-renyi", n=12, p=0.6, seed=2, byzantine=[3, 7])
FULL = bm.network("complete", n=6, byzantine=[4, 5])
EXAMPLES: dict[str, dict[str, Any]] = {"schedule": {"edges": [[[0, 1], [2, 3]], [[1, 2]]]}}
ALL = sorted(set(processes.names()) - {"static"})


def rounds_of(spec: Any, net: bm.Network = NET, seed: int = 0) -> Meetings:
    return Meetings(bm.process(spec), net.links, net.lies, seed)


def pairs(links: Links) -> set[tuple[int, int]]:
    return set(zip(links.receiver.tolist(), links.sender.tolist()))


def near(count: Any, times: int, chance: float) -> bool:
    """Whether a frequency is within five standard deviations of its probability."""
    return bool(abs(count / times - chance) <= 5 * sqrt(chance * (1 - chance) / times) + 1e-12)


@pytest.mark.parametrize("name", ALL)
def test_a_round_is_a_function_of_seed_and_number(name: str) -> None:
    spec = {"name": name, **EXAMPLES.get(name, {})}
    forwards, backwards, other = rounds_of(spec), rounds_of(spec), rounds_of(spec, seed=1)
    seen = [forwards.at(k) for k in range(20)]
    again = [backwards.at(k) for k in reversed(range(20))][::-1]
    for one, two in zip(seen, again):
        assert pairs(one.links) == pairs(two.links) and (one.active == two.active).all()
        assert np.array_equal(one.age, two.age) if one.age is not None else two.age is None  # type: ignore[arg-type]
        assert all((np.diff(one.links.of(node)) > 0).all() and node not in one.links.of(node) for node in range(12))
        assert len(one.links.start) == 13 and one.links.start[-1] == len(one.links.sender)
    if name not in ("schedule", "one-peer-exponential"):
        described = [(pairs(m.links), m.active.tobytes(), None if m.age is None else m.age.tobytes()) for m in seen]
        assert len({str(text) for text in described}) > 1
        assert any(
            pairs(a.links) != pairs(b.links) or (a.age is not None and (a.age != b.age).any())
            for a, b in zip(seen, (other.at(k) for k in range(20)))
        )


def test_messages_are_lost_independently_with_probability_p() -> None:
    rounds, times = rounds_of({"name": "link-loss", "p": 0.3}), 4000
    came: Counter[tuple[int, int]] = Counter()
    both = 0
    first, second = sorted(pairs(NET.links))[:2]
    for k in range(times):
        now = pairs(rounds.at(k).links)
        assert now <= pairs(NET.links)
        came.update(now)
        both += first in now and second in now
    assert all(near(came[pair], times, 0.7) for pair in pairs(NET.links))
    assert near(both, times, 0.49)


def test_sleepers_are_silent_and_drawn_anew() -> None:
    rounds, times = rounds_of({"name": "sleep", "p": 0.2}), 4000
    up = np.zeros(12)
    twice = 0
    for k in range(times):
        meeting = rounds.at(k)
        wanted = {(n, m) for n, m in pairs(NET.links) if meeting.active[n] and meeting.active[m]}
        assert pairs(meeting.links) == wanted
        up += meeting.active
        twice += meeting.active[0] and rounds.at(k + 1).active[0]
    assert all(near(count, times, 0.8) for count in up)
    assert near(twice, times, 0.64)
    assert all(rounds_of({"name": "sleep", "p": 0.9, "liars": "awake"}).at(k).active[[3, 7]].all() for k in range(50))


def test_churn_has_its_mean_times() -> None:
    rounds, times = rounds_of({"name": "churn", "up": 6, "down": 3}), 20000
    up = np.array([rounds.at(k).active for k in range(times)])
    assert abs(up.mean() - 2 / 3) < 0.02
    assert abs(up[:5].mean() - 2 / 3) < 0.3
    leave = (up[:-1] & ~up[1:]).sum() / up[:-1].sum()
    back = (~up[:-1] & up[1:]).sum() / (~up[:-1]).sum()
    assert abs(1 / leave - 6) < 0.2 and abs(1 / back - 3) < 0.1


def test_churn_is_stationary_from_the_first_round() -> None:
    first = [rounds_of({"name": "churn", "up": 6, "down": 3}, seed=seed).at(0).active for seed in range(300)]
    assert near(np.sum(first), 3600, 2 / 3)


def test_messages_are_late_by_one_to_s_rounds() -> None:
    rounds, times = rounds_of({"name": "late", "p": 0.4, "s": 3}), 500
    ages = np.concatenate([rounds.at(k).age for k in range(3, times)])
    counts = np.bincount(ages, minlength=4)
    assert near(counts[0], len(ages), 0.6) and all(near(count, len(ages), 0.4 / 3) for count in counts[1:])
    oldest = [max(np.asarray(rounds.at(k).age).tolist()) for k in range(4)]
    assert oldest == [0, 1, 2, 3]
    assert pairs(rounds.at(5).links) == pairs(NET.links)


@pytest.mark.parametrize("s", [1, 3, 4])
def test_every_subset_is_pulled_equally_often(s: int) -> None:
    rounds, times = rounds_of({"name": "random-pull", "s": s}, FULL), 3000
    seen = Counter(tuple(rounds.at(k).links.of(2)) for k in range(times))
    assert len(seen) == comb(5, s) and all(near(count, times, 1 / comb(5, s)) for count in seen.values())
    assert all((rounds.at(k).links.degree == s).all() for k in range(20))


def test_pulls_stay_among_the_neighbours() -> None:
    rounds = rounds_of({"name": "random-pull", "s": 4})
    for k in range(50):
        now = rounds.at(k).links
        assert pairs(now) <= pairs(NET.links) and (now.degree == np.minimum(NET.degree, 4)).all()


def test_pulls_of_different_workers_are_independent() -> None:
    rounds, times = rounds_of({"name": "random-pull", "s": 1}, FULL), 6000
    both = Counter((int(rounds.at(k).links.of(0)[0]), int(rounds.at(k).links.of(1)[0])) for k in range(times))
    assert len(both) == 25 and all(near(count, times, 1 / 25) for count in both.values())


def test_all_but_f_respond() -> None:
    rounds, times = rounds_of({"name": "responders", "f": 2}, FULL), 3000
    seen = Counter(tuple(rounds.at(k).links.of(0)) for k in range(times))
    assert len(seen) == comb(5, 3) and all(near(count, times, 1 / comb(5, 3)) for count in seen.values())


@pytest.mark.parametrize(("f", "honest"), [(2, 1), (4, 0)])
def test_liars_that_answer_first_are_never_left_out(f: int, honest: int) -> None:
    rounds = rounds_of({"name": "responders", "f": f, "liars": "first"}, FULL)
    left = Counter[int]()
    for k in range(600):
        heard = rounds.at(k).links.of(0)
        assert len(heard) == 5 - f and np.isin(heard, [4, 5]).sum() == min(2, 5 - f)
        left.update(heard.tolist())
    assert all(near(left[node], 600, honest / 3) for node in (1, 2, 3))


def test_matchings_are_maximal_and_uniform_on_complete_graphs() -> None:
    rounds, times = rounds_of("matching", FULL), 3000
    seen = Counter(tuple(rounds.at(k).links.sender) for k in range(times))
    assert len(seen) == 15 and all(near(count, times, 1 / 15) for count in seen.values())
    rounds = rounds_of("matching")
    for k in range(100):
        links = rounds.at(k).links
        assert (links.degree <= 1).all() and pairs(links) <= pairs(NET.links)
        assert all((m, n) in pairs(links) for n, m in pairs(links))
        alone = set(np.flatnonzero(links.degree == 0).tolist())
        assert not any(n in alone and m in alone for n, m in pairs(NET.links))


@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_one_peer_exponential_averages_exactly_on_powers_of_two(n: int) -> None:
    net = bm.network("ring" if n > 2 else "chain", n=n)
    rounds, values = rounds_of("one-peer-exponential", net), np.arange(float(n))
    for k in range(n.bit_length() - 1):
        values = np.array([(values[i] + values[rounds.at(k).links.of(i)[0]]) / 2 for i in range(n)])
    np.testing.assert_allclose(values, (n - 1) / 2)


def test_moving_workers_are_linked_as_often_as_uniform_points() -> None:
    radius = 0.3
    chance = pi * radius**2 - 8 * radius**3 / 3 + radius**4 / 2
    linked = total = 0
    for seed in range(400):
        rounds = rounds_of({"name": "mobile", "radius": radius, "speed": 0.05}, seed=seed)
        for k in (0, 17, 1000):
            links = rounds.at(k).links
            assert (links.back >= 0).all()
            linked += len(links.sender)
            total += 12 * 11
    assert abs(linked / total - chance) < 0.01


def test_moving_workers_move_a_little() -> None:
    rounds = rounds_of({"name": "mobile", "radius": 0.4, "speed": 0.01})
    changed = [len(pairs(a.links) ^ pairs(b.links)) for a, b in pairwise([rounds.at(k) for k in range(50)])]
    assert 0 < np.mean(changed) < 8


def test_a_schedule_is_followed_and_repeated(tmp_path: Any) -> None:
    both: list[Any] = [[[0, 1], [2, 3]], [], [[1, 2]]]
    (tmp_path / "contacts.txt").write_text("# round a b\n0 0 1\n0, 2, 3\n2 1 2\n")
    for spec in ({"edges": both}, {"file": str(tmp_path / "contacts.txt")}, {"edges": lambda k: both[k % 3]}):
        rounds = rounds_of({"name": "schedule", **spec})
        for k in range(9):
            wanted = {(a, b) for a, b in both[k % 3]}
            assert pairs(rounds.at(k).links) == wanted | {(b, a) for a, b in wanted}
    directed = rounds_of({"name": "schedule", "edges": [[[0, 1]]], "directed": True}).at(0).links
    assert pairs(directed) == {(1, 0)}, "0 sends, 1 receives"


def test_processes_are_applied_in_order_and_draw_independently() -> None:
    twice, times = rounds_of([{"name": "link-loss", "p": 0.5}, {"name": "link-loss", "p": 0.5}]), 1000
    came = sum(len(twice.at(k).links.sender) for k in range(times))
    assert near(came, times * len(NET.links.sender), 0.25)
    asleep_first = rounds_of([{"name": "sleep", "p": 0.5}, {"name": "random-pull", "s": 2}], FULL)
    asleep_last = rounds_of([{"name": "random-pull", "s": 2}, {"name": "sleep", "p": 0.5}], FULL)
    for k in range(100):
        up, awake = asleep_first.at(k), int(asleep_first.at(k).active.sum())
        assert (up.links.degree[up.active] == min(2, awake - 1)).all()
    assert any((asleep_last.at(k).links.degree[asleep_last.at(k).active] < 2).any() for k in range(20))


def kept(process: list[bm.Process], nodes: Integers) -> list[bm.Process]:
    return [one.among(nodes, NET.n) if one.among else one for one in process]


def test_a_schedule_among_some_workers_is_renumbered() -> None:
    inner = kept(bm.process({"name": "schedule", "edges": [[[0, 2], [1, 3]], [[2, 3]]]}), np.array([0, 2, 3]))
    assert inner[0].options["edges"] == [[[0, 1]], [[1, 2]]]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"name": "link-los"}, "did you mean 'link-loss'"),
        ({"name": "link-loss", "p": 2}, "process link-loss: p must be"),
        (["sleep", "mobile"], "process mobile replaces the links, so it must be the first"),
        ({"name": "schedule"}, "needs either edges or file"),
        ({"name": "schedule", "edges": [[[0, 0]]]}, "an edge of round 0 must be two different workers"),
        ({"name": "schedule", "file": "nowhere.txt"}, "cannot read nowhere.txt"),
    ],
)
def test_mistakes_are_named(spec: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        bm.process(spec)


def test_a_schedule_of_other_workers_is_refused_where_nobody_lies() -> None:
    """Liars who do not take part are left out of a schedule; a worker who does not exist is a mistake."""
    for edges in ([[[0, 4]]], lambda round: [[0, 1]] if round < 3 else [[0, 4]]):
        with pytest.raises(ConfigError, match="names worker 4, but workers are numbered 0 to 3"):
            bm.simulate(
                problem="quadratic",
                network={"name": "complete", "n": 4},
                process={"name": "schedule", "edges": edges},
                rounds=4,
            )


def test_a_schedule_of_other_workers_is_refused() -> None:
    with pytest.raises(ConfigError, match="names worker 12, but workers are numbered 0 to 11"):
        rounds_of({"name": "schedule", "edges": [[[0, 12]]]})
