"""Rounds over a changing network equal loops written from the definition; resuming, silence, bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.attacks.base import attacks
from byzmesh.errors import ConfigError, InfeasibleBound
from byzmesh.rules.base import rules
from byzmesh.simulation.live_exchange import LiveExchange
from tests.rules.cases import VARIANTS
from tests.simulation.loops import plain_loops
from tests.simulation.small import config, equal_when_resumed, write_data

MIXED: list[dict[str, Any]] = [
    {"name": "random-pull", "s": 5},
    {"name": "link-loss", "p": 0.2},
    {"name": "sleep", "p": 0.2},
    {"name": "late", "p": 0.3, "s": 2},
]
"""Everything at once: directed, with losses, sleepers and old messages."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


def raw(data: Path, process: Any, **more: Any) -> dict[str, Any]:
    problem = {"name": "softmax", "dataset": str(data), "batch": 8, "init": "normal"}
    return config(data, **{"problem": problem, "rounds": 4, "process": process, **more})


@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=str)
def test_rounds_equal_the_loops_for_every_rule(data: Path, name: str, options: dict[str, Any]) -> None:
    given = raw(data, MIXED, rule={"name": name, **options})
    np.testing.assert_allclose(bm.simulate(**given).models, plain_loops(given, 4), rtol=1e-8, atol=1e-8)


PROCESSES: list[Any] = [
    {"name": "random-pull", "s": 3},
    {"name": "link-loss", "p": 0.5},
    {"name": "churn", "up": 3, "down": 2},
    {"name": "late", "s": 3},
    {"name": "responders", "f": 2, "liars": "first"},
    "matching",
    "one-peer-exponential",
    {"name": "mobile", "radius": 0.5, "speed": 0.1},
    {"name": "schedule", "edges": [[[0, 1], [7, 2], [9, 2]], [], [[3, 4], [4, 7]]]},
]


@pytest.mark.parametrize("process", PROCESSES, ids=str)
def test_rounds_equal_the_loops_for_every_process(data: Path, process: Any) -> None:
    pairs = (("alie", "equal"), ("isolation", "lazy"), ("mimic", "max-degree"), ("gaussian", "mh"), ("stale", "equal"))
    for attack, scheme in pairs:
        network = {"name": "paper/two-castle", "weights": scheme}
        given = raw(data, process, attack=attack, network=network, local={"momentum": "heavy-ball"}, rounds=5)
        want = plain_loops(given, 5)
        np.testing.assert_allclose(bm.simulate(**given).models, want, rtol=1e-7, atol=1e-7 * np.abs(want).max())


def test_every_attack_bears_changing_links(data: Path) -> None:
    """Whatever an attack prepares or remembers fits the links of each round, also when nobody hears a liar."""
    process = [{"name": "random-pull", "s": 2}, {"name": "sleep", "p": 0.4}]
    for name in attacks.names():
        attack = attacks.build(name)
        if name != "none" and attack.poison in (None, {"kind": "labels"}):
            run = bm.simulate(**raw(data, process, attack=name, rule="trimean", rounds=6))
            assert run.status == "finished" and np.isfinite(run.models).all(), name


def test_no_loss_is_the_network_itself(data: Path) -> None:
    """With every message, a process gives what the network itself gives, up to the rounding of the weights."""
    still = bm.simulate(**raw(data, None, rounds=12))
    for process in ({"name": "link-loss", "p": 0.0}, {"name": "sleep", "p": 0.0}, {"name": "random-pull", "s": 99}):
        np.testing.assert_allclose(bm.simulate(**raw(data, process, rounds=12)).models, still.models, rtol=1e-12)
    same = bm.simulate(**raw(data, "static", rounds=12))
    assert same.models.tobytes() == still.models.tobytes() and "process" not in same.config


QUIET: dict[str, Any] = {"name": "schedule", "edges": [[], [[0, 7], [1, 2]], [[0, 1]], []]}
"""In one round of four there is a liar to hear."""


@pytest.mark.parametrize("rounds", [8, 200])
def test_what_an_attack_remembers_it_remembers_of_rounds_in_which_nobody_hears_a_liar(data: Path, rounds: int) -> None:
    """The running average of a reflection is that of all rounds, in a run of prepared and compiled rounds, too."""
    lie = {"name": "reflection", "reference": "average", "memory": 0.9}
    run = bm.prepare(**raw(data, QUIET, attack={"name": "late", "inner": lie, "after": 5}, rounds=rounds))
    average: Any = None
    for _ in range(8):
        assert run.step()
        now = run.half.mean(axis=0)
        average = now if average is None else 0.9 * average + 0.1 * now
        np.testing.assert_allclose(run.attack_state.memory[0].memory, average, rtol=1e-12)


STATEFUL: list[dict[str, Any]] = [
    {"process": QUIET, "attack": {"name": "reflection", "reference": "average"}},
    {"process": QUIET, "attack": {"name": "mixed", "inner": {"name": "stale", "period": 2}, "other": "ascent"}},
    {"process": MIXED},
    {"process": MIXED, "rule": {"name": "CC", "centre": "memory"}, "attack": "mimic"},
    {"process": MIXED, "local": {"momentum": "heavy-ball"}, "attack": "stale", "dtype": "float32"},
    {"process": {"name": "churn", "up": 3, "down": 2}, "local": {"variance": "saga"}},
    {"process": {"name": "sleep", "p": 0.4}, "local": {"variance": "lsvrg", "refresh": 0.3}},
    {"process": "matching", "attack": "label-flipping"},
    {"process": [{"name": "sleep", "p": 0.3}, {"name": "late", "s": 2}], "attack": "pull-back"},
    {"process": {"name": "responders", "f": 3}, "attack": "adaptive", "rule": "trimean"},
]


@pytest.mark.parametrize("change", STATEFUL, ids=str)
def test_a_run_resumed_inside_a_process_equals_an_uninterrupted_one(
    data: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    given = raw(data, None, rounds=9, evaluate_every=3) | change
    equal_when_resumed(given, tmp_path / "run", evaluated=3, more=2)


@pytest.mark.parametrize("variance", ["none", "saga", "lsvrg"])
def test_sleepers_stay_as_they_are(data: Path, variance: str) -> None:
    """Model, momentum and gradient memory of a sleeper are the same after the round, bit for bit."""
    given = raw(data, {"name": "sleep", "p": 0.5}, local={"momentum": "heavy-ball", "variance": variance}, rounds=6)
    run = bm.prepare(**given)
    asleep_once = False
    for k in range(6):
        before = run.models.copy()
        memory = {name: values.copy() for name, values in run.local_round.states().items()}
        assert run.step() and run.live is not None
        asleep = run.live.asleep
        np.testing.assert_array_equal(run.models[asleep], before[asleep])
        for name, values in run.local_round.states().items():
            if len(values) == len(before):
                np.testing.assert_array_equal(values[asleep], memory[name][asleep], err_msg=name)
            elif k:
                task: Any = run.task
                mine = [place for row in asleep for place in task.share(int(row))[0].ravel().tolist()]
                np.testing.assert_array_equal(values[mine], memory[name][mine], err_msg=name)
        awake = np.setdiff1d(np.arange(len(before)), asleep)
        assert (run.models[awake] != before[awake]).any(axis=1).all()
        asleep_once |= len(asleep) > 0
    assert asleep_once


SILENCE: dict[str, Any] = {
    "nobody arrives": [[]],
    "one arrives": [[[0, 1], [2, 3], [4, 5], [6, 8], [10, 11]]],
    "only liars arrive": [[[7, node] for node in range(12) if node not in (7, 9)]],
    "one worker hears only liars, others nobody": [[[7, 0], [9, 0]]],
}


@pytest.mark.parametrize("pattern", SILENCE)
@pytest.mark.parametrize("f", ["exact", 1])
def test_every_rule_bears_silence(data: Path, pattern: str, f: Any) -> None:
    """Whatever does not arrive, models stay finite; whoever hears nobody keeps its half step."""
    for name in rules.names():
        if not rules.entry(name).factory.__module__.startswith("byzmesh."):
            continue
        process = {"name": "schedule", "edges": SILENCE[pattern], "directed": "liars" in pattern}
        attack = "huge" if "liars" in pattern else "sign-flipping"
        run = bm.prepare(**raw(data, process, rule=name, attack=attack, f=f, rounds=2))
        assert run.step(), name
        assert np.isfinite(run.models).all(), name
        heard = run.exchange.valid.sum(axis=1) > 1
        if run.rule.sends == "half":
            np.testing.assert_allclose(run.models[~heard], run.half[~heard], atol=1e-12, err_msg=name)
        if "liars" in pattern and run.rule.uses_f and f == "exact":
            assert np.abs(run.models).max() < 1e6, f"{name}: a worker that knows its liars believed them"


@pytest.mark.parametrize("process", [{"name": "sleep", "p": 0.4}, "one-peer-exponential"], ids=str)
def test_graphs_that_come_again_have_the_inboxes_of_their_links(monkeypatch: pytest.MonkeyPatch, process: Any) -> None:
    """Also when so many graphs come that the kept ones are forgotten."""
    monkeypatch.setattr("byzmesh.simulation.live.KNOWN", 20)
    network = {"name": "complete", "n": 6, "byzantine": [2]}
    run = bm.prepare(problem="quadratic", network=network, attack="zero", process=process, rounds=1)
    assert run.live is not None
    seen: set[int] = set()
    for k in range(200):
        exchange = run.live.meet(k)
        fresh = LiveExchange(run.live.stage, run.live.meetings.at(k), run.live.past)
        for name in ("sender", "honest_row", "valid", "lying", "weight", "liars"):
            np.testing.assert_array_equal(getattr(exchange, name), getattr(fresh, name), err_msg=name)
        assert (exchange.lies, exchange.victims, exchange.near) == (fresh.lies, fresh.victims, fresh.near)
        seen.add(id(exchange))
    assert len(seen) < 150


def test_rounds_prepared_ahead_are_those_prepared_one_by_one() -> None:
    network = {"name": "complete", "n": 6, "byzantine": [2]}
    given: dict[str, Any] = {"problem": "quadratic", "network": network, "attack": "isolation", "rounds": 20}
    runs = [bm.prepare(**given, process=["link-loss", {"name": "sleep", "p": 0.3}]) for _ in range(2)]
    assert runs[0].live is not None and runs[1].live is not None and runs[0].live.ahead == 16
    runs[1].live.ahead = 1
    for _ in range(20):
        assert runs[0].step() and runs[1].step()
        np.testing.assert_array_equal(runs[0].models, runs[1].models)
        np.testing.assert_array_equal(runs[0].live.asleep, runs[1].live.asleep)
        np.testing.assert_array_equal(runs[0].bound, runs[1].bound)


def test_an_error_of_a_later_round_waits_for_it() -> None:
    def edges(round: int) -> list[list[int]]:
        if round == 3:
            raise ConfigError("nobody knows round 3")
        return [[0, 1]]

    process = {"name": "schedule", "edges": edges}
    run = bm.prepare(problem="quadratic", network={"name": "complete", "n": 4}, process=process, rounds=9)
    assert [run.step() for _ in range(3)] == [True] * 3
    with pytest.raises(ConfigError, match="nobody knows round 3"):
        run.step()


def test_feasibility_is_checked_on_what_a_round_brings(data: Path) -> None:
    with pytest.raises(InfeasibleBound):
        bm.prepare(**raw(data, {"name": "random-pull", "s": 3}, rule="trimean", f=2))
    bm.prepare(**raw(data, {"name": "random-pull", "s": 5}, rule="trimean", f=2))


def test_metrics_of_one_graph_are_refused(data: Path) -> None:
    with pytest.raises(ConfigError, match="leave it out with a process"):
        bm.simulate(**raw(data, "matching", measure=["contraction"]))


def test_explicit_weights_lose_what_is_lost(data: Path) -> None:
    network = bm.network("ring", n=5, byzantine=[4])
    mixing = network.mixing.tolist()
    run = bm.prepare(
        problem="quadratic", network=network.with_weights(mixing), rule="weimean", process="link-loss", rounds=1
    )
    run = bm.prepare(**{**run.config, "network": {**run.config["network"], "weights": mixing}, "attack": "zero"})
    run.step()
    exchange = run.exchange
    np.testing.assert_allclose(exchange.weight.sum(axis=1), 1.0)
    inside = exchange.valid & (np.arange(exchange.valid.shape[1]) > 0)
    assert np.allclose(exchange.weight[inside], 1 / 3)
    with pytest.raises(ConfigError, match="weights cannot be numbers"):
        bm.prepare(**{**run.config, "process": "mobile"})


def test_edges_count_pairs_that_met(data: Path) -> None:
    run = bm.simulate(**raw(data, {"name": "random-pull", "s": 3}, attack="gaussian", rounds=50))
    edges = run.edges
    assert edges is not None and edges.rounds.sum() == 50 * 10 * 3
    lies = edges.lying
    trusted = 1 - edges.cut / edges.rounds
    assert trusted[lies].mean() < 0.05 < 0.8 < trusted[~lies].mean()
