"""The lower bound, by the two worlds of its proof."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from byzmesh.config.schema import resolve
from byzmesh.networks import Network
from byzmesh.problems.base import problems
from byzmesh.studies.audit.unavoidable import Unavoidable, lower_bound, unavoidable


@pytest.mark.parametrize(("honest", "liars"), [(10, 2), (7, 1), (5, 4)])
def test_no_point_is_good_in_both_worlds(honest: int, liars: int) -> None:
    """Whatever x an algorithm returns, in one of the worlds its squared gradient is at least the bound."""
    first = np.array([-1.0] * liars + [0.0] * (honest - liars))
    second = -first
    zeta = float(np.sqrt(np.mean((first - first.mean()) ** 2)))
    bound = lower_bound(honest, liars, zeta)
    worst = min(max((x - first.mean()) ** 2, (x - second.mean()) ** 2) for x in np.linspace(-1.0, 1.0, 4001))
    assert worst >= bound * (1.0 - 1e-9) and worst == pytest.approx(bound, rel=1e-2), "and the bound is reached"


@pytest.mark.parametrize(("honest", "liars"), [(1, 2), (2, 1), (2, 5), (4, 4), (6, 3)])
def test_who_listens_to_nobody_does_not_beat_the_bound(honest: int, liars: int) -> None:
    """Its squared gradient is at most (N - 1) zeta^2 however many lie: a bound above that would be wrong."""
    random = np.random.default_rng(honest)
    for _ in range(200):
        minima = random.normal(size=honest) * (random.random(honest) < 0.5)
        zeta = float(np.sqrt(np.mean((minima - minima.mean()) ** 2)))
        worst = float(np.max((minima - minima.mean()) ** 2))
        assert worst <= (honest - 1) * zeta**2 * (1.0 + 1e-9)
        assert lower_bound(honest, liars, zeta) <= (honest - 1) * zeta**2
    assert "inf" not in str(
        Unavoidable(honest=honest, liars=liars, zeta=1.0, delta_out=1.0, b=0.5, mu_2=0.1, initial=1.0)
    )


@pytest.mark.parametrize(("honest", "liars"), [(4, 1), (5, 2)])
def test_no_labelling_is_right_in_both_worlds(honest: int, liars: int) -> None:
    """One input per worker; every labelling of the inputs that a common model could choose is tried in both worlds."""
    inputs = [*range(honest), *range(liars)]  # the last have those of the first
    labels = [0] * honest + [1] * liars
    worlds = ([*range(honest)], [*range(liars, honest + liars)])
    best = max(
        min(float(np.mean([chosen[inputs[worker]] == labels[worker] for worker in world])) for world in worlds)
        + max(float(np.mean([chosen[inputs[worker]] == labels[worker] for worker in world])) for world in worlds)
        for chosen in itertools.product((0, 1), repeat=honest)
    )
    known: dict[str, Any] = {"zeta": 1.0, "delta_out": 1.0, "b": 0.1, "mu_2": 0.7, "initial": 1.0}
    told = Unavoidable(honest=honest, liars=liars, **known)
    assert 50.0 * best == pytest.approx(told.accuracy), "the mean over the worlds: a rule may draw which one to trust"
    assert f"more than {told.accuracy:.1f}% of the honest workers' data" in str(told)
    assert Unavoidable(honest=2, liars=3, **known).accuracy == 75.0


def others(net: Network, *, exact: bool) -> list[tuple[int, ...]]:
    """As many honest workers who might lie instead, and what rules are told would still be true."""
    honest, adjacent = net.honest.tolist(), np.asarray(net.adjacency) != 0
    most = int(net.lying_neighbours.max())
    counts = dict(zip(honest, net.lying_neighbours.tolist(), strict=True))
    found = []
    for chosen in itertools.combinations(honest, len(net.byzantine)):
        now = adjacent[:, list(chosen)].sum(axis=1)
        same = all(now[worker] == count for worker, count in counts.items() if worker not in chosen)
        within = all(now[worker] <= most for worker in range(net.n) if worker not in chosen)
        if same if exact else within:
            found.append(chosen)
    return found


REPORT = Path(__file__).parents[3] / "reports/audit"
FILES = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(REPORT.glob("*.yaml"))}
GRAPHS: dict[str, Any] = {name: name for name in ("paper/two-castle", "paper/er-12", "paper/octopus")}
GRAPHS |= {name: file["network"] for name, file in FILES.items() if "attack" in file and "network" in file}


@pytest.mark.parametrize("spec", [pytest.param(GRAPHS[name], id=name) for name in GRAPHS])
def test_the_worlds_of_the_proof_look_alike_on_the_graphs_that_are_reported(spec: Any) -> None:
    """To a rule that is told the largest number of lying neighbours for all."""
    assert others(Network.from_spec(resolve({"problem": "quadratic", "network": spec})["network"]), exact=False)


def test_a_rule_that_is_told_more_is_not_meant() -> None:
    """Ten workers hear each other, two liars are heard by worker 0 only: exact counts leave one world."""
    edges = [list(pair) for pair in (*itertools.combinations(range(10), 2), (0, 10), (0, 11))]
    network = {"edges": edges, "byzantine": [10, 11]}
    config = resolve({"problem": {"name": "quadratic", "targets": "normal"}, "network": network})
    net = Network.from_spec(config["network"])
    assert others(net, exact=False) and not others(net, exact=True)
    told = str(unavoidable(config))
    assert (
        "No rule that is told only the graph and how many lie (2 liars beside 10 honest workers) can guarantee" in told
    )
    assert "(f: exact), nothing of this is proved" in told


def test_one_bound_for_all_may_tell_who_lies() -> None:
    """Five liars, each heard by another of ten who hear each other: with f = 1 for all nobody else may lie instead."""
    clique = itertools.combinations(range(10), 2)
    edges = [list(pair) for pair in (*clique, *((worker, 10 + worker) for worker in range(5)))]
    config = resolve({"problem": "quadratic", "network": {"edges": edges, "byzantine": [*range(10, 15)]}})
    assert not others(Network.from_spec(config["network"]), exact=False)
    assert "one bound" not in str(unavoidable(config)), "f: max is told more than how many lie"


def test_classifiers_are_spoken_of_where_there_are_labels(tmp_path: Path) -> None:
    """Not for regression, where the promise of an accuracy means nothing."""
    about = {"network": "paper/two-castle"}
    plain = unavoidable(resolve({**about, "problem": {"name": "noisy-quadratic", "dimension": 2}}))
    assert not plain.classifies and np.isnan(plain.accuracy) and "classifier" not in str(plain)
    file = tmp_path / "tiny.npz"
    np.savez(file, features=np.random.default_rng(0).normal(size=(60, 2)), labels=np.arange(60) % 3)
    labelled = unavoidable(resolve({**about, "problem": {"name": "softmax", "dataset": str(file)}}))
    assert labelled.accuracy == 90.0 and "classifier that is right on more than 90.0% of the honest" in str(labelled)
    assert "whatever the data" not in str(labelled)


def test_of_a_config() -> None:
    config = resolve({"problem": {"name": "quadratic", "targets": "normal"}, "network": "paper/two-castle"})
    told = unavoidable(config)
    assert (told.honest, told.liars, round(told.b, 3), round(told.mu_2, 3)) == (10, 2, 0.182, 0.727)
    assert 0.0 < told.zeta <= told.delta_out and told.gradient == pytest.approx(told.zeta**2 / 4)
    assert "NeurIPS 2023" in str(told) and "below mu_2 / 2" in str(told)


def test_what_is_measured() -> None:
    """Minima of three workers at 1, of seven at 0: deviations of 0.7 and 0.3; who has fewest neighbours bears f = 2."""
    targets = np.repeat([1.0, 0.0], [3, 7])[:, None].tolist()
    told = unavoidable(resolve({"problem": {"name": "quadratic", "targets": targets}, "network": "paper/er-12"}))
    assert told.zeta**2 == pytest.approx(0.21) and told.delta_out == pytest.approx(0.7) and told.tolerable == 2


def test_how_much_gradients_differ_is_measured_after_some_steps(tmp_path: Path) -> None:
    file, random = tmp_path / "tiny.npz", np.random.default_rng(0)
    np.savez(file, features=random.normal(size=(90, 3)), labels=np.arange(90) % 3)
    problem = {"name": "softmax", "dataset": str(file), "partition": {"name": "dirichlet", "alpha": 0.3}}
    config = resolve({"problem": problem, "network": "paper/two-castle"})
    task = problems.build(config["problem"]).bind(workers=10, seed=config["seed"], dtype="float64", threads=1)
    model, squares = np.zeros(task.dimension), []
    for _ in range(2):
        gradients = np.asarray(task.local_gradients(model))
        squares.append(float(np.mean(np.sum((gradients - gradients.mean(axis=0)) ** 2, axis=1))))
        model = model - 8.0 / task.smoothness() * gradients.mean(axis=0)
    measured = unavoidable(config).zeta ** 2
    assert abs(measured - squares[1]) < 0.5 * abs(measured - squares[0])


def test_of_gradients_nothing_is_said_where_workers_count_by_their_samples(tmp_path: Path) -> None:
    file = tmp_path / "tiny.npz"
    np.savez(file, features=np.random.default_rng(0).normal(size=(90, 2)), labels=np.arange(90) % 3)
    partition = {"name": "dirichlet", "alpha": 0.3}
    problem = {"name": "softmax", "dataset": str(file), "partition": partition}
    config = {"problem": problem, "network": "paper/two-castle"}
    told = unavoidable(resolve({**config, "objective": "samples"}))
    assert np.isnan([told.zeta, told.gradient, told.initial, told.accuracy]).all() and told.tolerable > 0
    assert "gradient" not in str(told) and "classifier" not in str(told) and "% of all data" not in str(told)
    equal = str(unavoidable(resolve(config)))
    assert "gradient" in equal and "classifier" in equal and "% of all data" in equal


def test_of_weights_nothing_is_said_where_the_network_changes() -> None:
    config = {"problem": {"name": "quadratic", "targets": "normal"}, "network": "paper/two-castle"}
    changing = unavoidable(resolve({**config, "process": {"name": "random-pull", "s": 2}}))
    assert np.isnan([changing.b, changing.mu_2]).all() and changing.tolerable == 0
    assert "weigh" not in str(changing) and "tolerable" not in str(changing)
    assert "weigh" in str(unavoidable(resolve(config))) and "tolerable" in str(unavoidable(resolve(config)))


def test_one_honest_worker_may_train_alone() -> None:
    network = {"name": "complete", "n": 3, "byzantine": [1, 2]}
    told = str(unavoidable(resolve({"problem": {"name": "quadratic", "targets": "normal"}, "network": network})))
    assert "nothing of this is unavoidable" in told and "guarantee" not in told


def test_where_training_begins_is_held_against_the_bound() -> None:
    """If the first model is already better than what any rule can guarantee, the text says so, and only then."""
    known: dict[str, Any] = {
        "honest": 10,
        "liars": 2,
        "zeta": 2.0,
        "delta_out": 5.0,
        "b": 0.1,
        "mu_2": 0.7,
    }  # the bound is 1
    assert "no such guarantee is better than not training" in str(Unavoidable(**known, initial=0.9))
    assert "not training" not in str(Unavoidable(**known, initial=1.1))
    config = resolve({"problem": {"name": "quadratic", "targets": "normal"}, "network": "paper/two-castle"})
    task = problems.build(config["problem"]).bind(workers=10, seed=config["seed"], dtype="float64", threads=1)
    start = task.initial()[0]
    pulled = np.mean([task.local_gradients(start)[worker] for worker in range(10)], axis=0)
    assert unavoidable(config).initial == pytest.approx(sum(value**2 for value in pulled))
