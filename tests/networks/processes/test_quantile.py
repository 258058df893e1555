"""`f: quantile` against 100,000 draws, and refused where a rule does not resist it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.errors import ConfigError
from byzmesh.networks.processes import Meetings
from byzmesh.networks.processes.inbox_counts import InboxCounts
from byzmesh.networks.processes.quantile import Quantile, _tail, chance_exceeded

FULL = bm.network("complete", n=13, byzantine=[2, 5, 9, 11])
DRAWS = 100_000
CASES: dict[str, Any] = {
    "random-pull": {"name": "random-pull", "s": 5},
    "link-loss": {"name": "link-loss", "p": 0.4},
    "responders": {"name": "responders", "f": 6},
    "liars first": {"name": "responders", "f": 9, "liars": "first"},
    "sleep": {"name": "sleep", "p": 0.3},
    "awake liars": [{"name": "sleep", "p": 0.3, "liars": "awake"}, {"name": "random-pull", "s": 4}],
    "churn": {"name": "churn", "up": 4, "down": 2},
    "pull and loss": [{"name": "random-pull", "s": 6}, {"name": "link-loss", "p": 0.3}],
    "loss and pull": [{"name": "link-loss", "p": 0.3}, {"name": "random-pull", "s": 6}],
}


@pytest.mark.parametrize("name", CASES)
def test_the_distribution_of_liars_is_that_of_100_000_inboxes(name: str) -> None:
    """Nine honest inboxes per round, 100,000 in all; those of one round of sleepers are not independent."""
    chosen = bm.process(CASES[name])
    counts = np.zeros(6)
    rounds = Meetings(chosen, FULL.links, FULL.lies, seed=3)
    for k in range(DRAWS // 9):
        meeting = rounds.at(k)
        heard = meeting.links.count(FULL.lies)[FULL.honest]
        counts += np.bincount(heard[meeting.active[FULL.honest]], minlength=6)
    tail = counts[::-1].cumsum()[::-1] / counts.sum()
    want = np.pad(_tail(chosen, 4, 8), (0, 1))
    # the chance that a pulling worker is itself awake is independent of what it hears
    np.testing.assert_allclose(tail[: len(want)], want, atol=0.025 if "churn" in name else 0.012)


@pytest.mark.parametrize("name", ["random-pull", "link-loss", "responders", "pull and loss"])
def test_the_statement_about_all_rounds_is_exact(name: str) -> None:
    """How often, over runs of 20 rounds, some inbox exceeds b: as computed, for every b."""
    chosen, length, runs = bm.process(CASES[name]), 20, 600
    want = chance_exceeded(chosen, FULL, length)
    rounds = Meetings(chosen, FULL.links, FULL.lies, seed=8)
    most = [
        max(int(rounds.at(run * length + k).links.count(FULL.lies)[FULL.honest].max()) for k in range(length))
        for run in range(runs)
    ]
    for b, chance in enumerate(want):
        seen = np.mean(np.array(most) > b)
        assert abs(seen - chance) <= 5 * np.sqrt(chance * (1 - chance) / runs) + 1e-9


def test_the_bound_grows_with_rounds_and_certainty() -> None:
    net = bm.network("complete", n=60, byzantine=6)
    chosen = bm.process("random-pull", s=8)
    bounds = [Quantile(delta).bound(chosen, net, rounds) for delta, rounds in ((0.5, 1), (0.05, 100), (1e-6, 10_000))]
    assert bounds[0] < bounds[1] < bounds[2] <= 6
    assert chance_exceeded(chosen, net, 10_000)[bounds[2]] <= 1e-6 < chance_exceeded(chosen, net, 10_000)[bounds[2] - 1]


def test_what_cannot_be_resisted_is_refused_with_the_smallest_s() -> None:
    def run(s: int) -> bm.Simulation:
        network = {"name": "complete", "n": 30, "byzantine": 6}
        process = {"name": "random-pull", "s": s}
        return bm.prepare(
            problem="quadratic", network=network, process=process, rule="ios", attack="alie", f="quantile", rounds=1000
        )

    with pytest.raises(ConfigError, match=r"hold up to 6 liars, and rule IOS resists 4 of 8 .* s that works is 12"):
        run(8)
    with pytest.raises(ConfigError):
        run(11)
    assert run(12).config["f"] == {"name": "quantile", "delta": 0.05}


def test_schedules_have_no_chance() -> None:
    ring = bm.network("ring", n=6, byzantine=[0, 3])
    edges = [[[0, 1], [3, 1]], [[0, 2]]]
    assert Quantile().bound(bm.process({"name": "schedule", "edges": edges}), ring, 100) == 2
    assert Quantile().bound(bm.process("one-peer-exponential"), ring, 100) == 1
    with pytest.raises(ConfigError, match="mobile has no known distribution"):
        Quantile().bound(bm.process("mobile"), ring, 100)


@pytest.mark.parametrize(
    ("f", "words"),
    [("quantile", "add a process"), ({"name": "quantile", "delta": 2}, "delta"), ({"delta": 0.1}, "quantile")],
)
def test_mistakes_are_named(f: Any, words: str) -> None:
    process = None if f == "quantile" else "matching"
    with pytest.raises(ConfigError, match=words):
        bm.prepare(problem="quadratic", network={"name": "ring", "n": 5}, f=f, process=process)


def test_probabilities_sum_to_one() -> None:
    counts = InboxCounts.certain(5, 9).thinned(0.3, 0.8).drawn(6).less(2).thinned(1.0, 0.5)
    assert abs(counts.probability.sum() - 1) < 1e-12 and (counts.probability >= 0).all()
