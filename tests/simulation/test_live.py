"""Rounds over a changing network equal loops written from the definition; resuming, silence, bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.attacks.base import attacks
from byzmesh.attacks.scene import make_scene
from byzmesh.errors import ConfigError, InfeasibleBound
from byzmesh.networks.processes import Meetings
from byzmesh.rules.base import rules
from tests.rules.cases import VARIANTS
from tests.rules.oracles import ORACLES
from tests.simulation.small import config, write_data

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


def weights_of(heard: dict[int, list[int]], worker: int, scheme: str) -> list[float]:
    """Own weight, then one per message, by the formula of the scheme with the degrees of the round."""
    mine = len(heard[worker])
    if scheme == "equal":
        shares = [1.0 / (1 + mine)] * mine
    elif scheme == "max-degree":
        shares = [1.0 / (1 + max(map(len, heard.values())))] * mine
    else:
        shares = [1.0 / (1 + max(mine, len(heard[other]))) for other in heard[worker]]
        shares = [share / 2 for share in shares] if scheme == "lazy" else shares
    return [1.0 - sum(shares), *shares]


def plain_loops(given: dict[str, Any], rounds: int) -> np.ndarray:
    """Algorithm 1 on the round's links, worker by worker and message by message."""
    simulation = bm.prepare(**given)
    task, network, rule, attack = simulation.task, simulation.network, simulation.rule, simulation.attack
    name, options, scheme = rule.name, dict(rule.options), network.weights
    meetings = Meetings(bm.process(given["process"]), network.links, network.lies, simulation.seed)
    row_of = {int(worker): row for row, worker in enumerate(network.honest)}
    models = [task.initial()[row].copy() for row in range(len(row_of))]
    memory = [np.zeros_like(model) for model in models]
    buffer = [np.zeros_like(model) for model in models]
    past: list[np.ndarray] = []
    state: Any = None
    for k in range(rounds):
        meeting, step, decay = meetings.at(k), simulation.schedule(k), simulation.local.decay
        heard: dict[int, list[int]] = {node: meeting.links.of(node).tolist() for node in range(network.n)}
        ages = iter([0] * len(meeting.links.sender) if meeting.age is None else meeting.age.tolist())
        age = {(node, other): next(ages) for node in range(network.n) for other in heard[node]}
        half = []
        for row, model in enumerate(models):
            if not meeting.active[network.honest[row]]:
                half.append(model)
                continue
            gradient = task.gradients(model[None], k, rows=np.array([row]))[0]
            if simulation.local.momentum == "heavy-ball":
                gradient = buffer[row] = simulation.local.beta * buffer[row] + gradient
            half.append((1.0 - step * decay) * model - step * gradient)
        sent = np.array(models if rule.sends == "start" else half)
        past = [sent, *past]
        links = [(node, other) for node in range(network.n) for other in heard[node]]
        tables = []
        for kind in (scheme, "metropolis-hastings"):
            shares = {node: weights_of(heard, node, kind) for node in heard}
            each = [shares[node][1 + heard[node].index(other)] for node, other in links]
            tables.append((np.array(each), np.array([shares[node][0] for node in heard])))
        receiver, sender = np.array(links, np.int64).reshape(-1, 2).T
        scene = make_scene(
            receiver,
            sender,
            network.honest,
            network.byzantine,
            mixing=tables[0],
            metropolis=tables[1],
            fiedler=simulation.scene.fiedler,
        )
        forged: Any = None
        if len(scene.liar):
            state = attack.init(scene) if not isinstance(state, np.ndarray | int | float) else state
            view = bm.View(models=sent, scene=scene, round=bm.Round(number=k, seed=simulation.seed))
            forged, state = attack.forge(view, state)
        fresh = []
        for worker, row in row_of.items():
            if not meeting.active[worker]:
                fresh.append(models[row])
                continue
            received, weights = [], weights_of(heard, worker, scheme)
            for other in heard[worker]:
                old = past[age[worker, other]]
                received.append(old[row_of[other]] if other in row_of else forged[other, worker])
            lying = sum(other not in row_of for other in heard[worker])
            f = min(lying if simulation.f == "exact" else simulation.f, len(received))
            if f > rule.largest_f(len(received)) or not received:
                if name not in ("CC", "ByRDiE"):
                    fresh.append(half[row])
                    continue
                received, weights, f = [], [1.0], 0
            extra: dict[str, Any] = {}
            if name == "DRSA":
                extra = {"step": step} | ({"previous": models[row]} if options["at"] == "start" else {})
            if name == "SimRew":
                extra = {"previous": models[row]}
            if name == "CC" and options["centre"] == "memory":
                extra = {"memory": memory[row]}
            if name == "BALANCE":
                extra = {"progress": k / rounds}
            if name == "ByRDiE":
                extra = {"previous": models[row], "number": k}
            if name in ("UBAR", "Zeno"):
                extra = {"loss": lambda v, row=row: float(task.losses(v[None, None], k, np.array([row]))[0, 0])}
            fresh.append(
                ORACLES[name](
                    half[row], np.array(received).reshape(-1, len(half[row])), np.array(weights), f, **extra, **options
                )
            )
        memory = [new if meeting.active[network.honest[row]] else memory[row] for row, new in enumerate(fresh)]
        models = fresh
    return np.array(models)


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
    for attack, scheme in (("alie", "equal"), ("isolation", "lazy"), ("mimic", "max-degree"), ("gaussian", "mh")):
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


STATEFUL: list[dict[str, Any]] = [
    {"process": MIXED},
    {"process": MIXED, "rule": {"name": "CC", "centre": "memory"}, "attack": "mimic"},
    {"process": MIXED, "local": {"momentum": "heavy-ball"}, "attack": "stale", "dtype": "float32"},
    {"process": {"name": "churn", "up": 3, "down": 2}, "local": {"variance": "saga"}},
    {"process": {"name": "sleep", "p": 0.4}, "local": {"variance": "lsvrg", "refresh": 0.3}},
    {"process": "matching", "attack": "label-flipping"},
    {"process": {"name": "responders", "f": 3}, "attack": "adaptive", "rule": "trimean"},
]


@pytest.mark.parametrize("change", STATEFUL, ids=str)
def test_a_run_resumed_inside_a_process_equals_an_uninterrupted_one(
    data: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    given = raw(data, None, rounds=9, evaluate_every=3) | change
    whole = bm.simulate(**given)
    first = bm.prepare(**given)
    for record in first:
        if record["round"] == 3.0:
            break
    for _ in range(2):
        first.step()
    first.save(tmp_path / "run")
    second = bm.prepare(**given)
    second.restore(tmp_path / "run")
    rest = second.run()
    assert rest.models.tobytes() == whole.models.tobytes()
    for name, values in whole.metrics.items():
        assert rest.metrics[name].tobytes() == values.tobytes()
    if whole.edges is not None:
        assert rest.edges is not None
        np.testing.assert_array_equal(rest.edges.counts, whole.edges.counts)


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
