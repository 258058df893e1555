"""What `byzmesh privacy` says about a run, and what it refuses to say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.config.schema import resolve
from byzmesh.errors import ConfigError
from byzmesh.sweeps.build import build
from byzmesh.sweeps.privacy import NoEpsilon, hiding, most_told, privacy
from byzmesh.theory import renyi

NOISE = {"name": "gaussian-noise", "sigma": 0.02}


DISTINCT = {"name": "softmax", "batch": 4, "batching": "distinct"}


def config(samples: Any, **more: Any) -> dict[str, Any]:
    problem = {**more.pop("problem", DISTINCT), "dataset": str(samples)}
    usual = {
        "problem": problem,
        "network": {"name": "complete", "n": 5},
        "rule": "ios",
        "rounds": 30,
        "step": 0.5,
        "local": {"decay": 0, "clip_samples": 1.0},
        "channel": [NOISE],
    }
    return resolve({**usual, **more})


def task_of(samples: Any) -> Any:
    return build(config(samples)).task


def test_epsilon_of_samples(samples: Any) -> None:
    run = config(samples)
    told = privacy(run, 1e-5, target=1.0)
    secret, known = told.statements
    multiplier = 0.02 / (2 * 1.0 * 0.5 / 4)
    size = int(task_of(samples).sizes().min())
    assert secret.least == pytest.approx(multiplier)
    assert secret.epsilon[-1] == pytest.approx(renyi.epsilon_of(30 * renyi.sampled_rdp(multiplier, 4 / size), 1e-5))
    assert secret.factor is not None and secret.factor > 1.0
    louder = [{**NOISE, "sigma": 0.02 * secret.factor}]
    assert privacy(config(samples, channel=louder)).statements[0].epsilon[-1] == pytest.approx(1.0, rel=1e-6)
    assert known.epsilon[0] == pytest.approx(renyi.gaussian_epsilon(multiplier, 1e-5)), "of the first batch"
    assert "One sample of a site" in str(told) and "noise times" in str(told)


def test_steps_that_shrink_cost_less_and_are_never_rounded_in_favour(samples: Any) -> None:
    falling = privacy(config(samples, step={"name": "inverse-sqrt", "a": 0.05, "b": 1}, rounds=20)).statements[0]
    constant = privacy(config(samples, rounds=20, step=0.05)).statements[0]
    assert falling.epsilon[-1] < constant.epsilon[-1]
    steps = [0.05 / np.sqrt(k + 1) for k in range(20)]
    size = int(task_of(samples).sizes().min())
    exact = renyi.epsilon_of(np.sum([renyi.sampled_rdp(0.02 / (2 * s / 4), 4 / size) for s in steps], axis=0), 1e-5)
    assert exact <= falling.epsilon[-1] <= exact * 1.06


def test_known_batches_count_the_sample_that_was_drawn_most(samples: Any) -> None:
    task = task_of(samples)
    change, told = np.linspace(1.0, 2.0, 12), dict[int, float]()
    most = most_told(task, change)
    for k in range(12):
        for pick in {int(pick) for pick in task.batches(k, np.arange(5))[0].ravel()}:
            told[pick] = told.get(pick, 0.0) + change[k] ** 2
        assert most[k] == pytest.approx(max(told.values()))


def test_epsilon_of_whole_workers(samples: Any) -> None:
    channel = [{"name": "clip", "radius": 0.1}, {**NOISE, "own": False}, "int8"]
    clipped = config(samples, local={"decay": 0}, channel=channel)
    (told,) = privacy(clipped).statements
    assert told.about == "worker"
    assert told.epsilon[-1] == pytest.approx(renyi.gaussian_epsilon(0.02 / 0.2 / np.sqrt(30), 1e-5))


def test_pairs_hide_a_worker_from_those_who_know_little(samples: Any) -> None:
    """The noise that hides worker n is what is left of it given all other messages: by regression, not by inverses."""
    net = bm.network("ring", n=6)
    draw, sigma, pair = np.random.default_rng(0), 0.3, 1.0
    for together in ([], [2], [1, 4]):
        others = [node for node in range(6) if node not in together]
        noise = sigma * draw.normal(size=(50_000, 6))
        for one, other in net.links.edges().tolist():
            if one in others and other in others:
                shared = pair * draw.normal(size=50_000)
                noise[:, one] += shared
                noise[:, other] -= shared
        left = []
        for node in others:
            rest = noise[:, [other for other in others if other != node]]
            guess = rest @ np.linalg.lstsq(rest, noise[:, node], rcond=None)[0]
            left.append((noise[:, node] - guess).std())
        assert hiding(net, np.array(together, int), sigma, pair) == pytest.approx(min(left), rel=0.03)
    both = privacy(config(samples, channel=[{"name": "pair-noise", "sigma": 0.1}, NOISE]))
    costs = {told.against: told.epsilon[-1] for told in both.statements if "secret" in told.against}
    local, one, outside = costs.values()
    assert outside < one < local


def test_pairs_with_much_louder_noise_than_ones_own_hide_no_more_than_the_sum_of_all() -> None:
    """With f of n workers together, the others' messages tell their sum up to sqrt(n - f) sigma."""
    for sigma, pair in ((1e-3, 1.0), (1e-8, 1.0), (1e-9, 100.0)):
        for together in ([], [1], [0, 3]):
            found = hiding(bm.network("complete", n=6), np.array(together, int), sigma, pair)
            assert found == pytest.approx(sigma * np.sqrt(6 - len(together)), rel=1e-5)


def test_pair_noise_needs_links_that_go_both_ways(samples: Any) -> None:
    one_way: dict[str, Any] = {"network": {"name": "directed-ring", "n": 5}, "channel": ["pair-noise", NOISE]}
    with pytest.raises(ConfigError, match="links that go both ways"):
        build(config(samples, rule="mean", **one_way))
    with pytest.raises(ConfigError, match="links that go both ways"):
        privacy(config(samples, rule="mean", **one_way))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"channel": []}, "no message has noise of its sender's own; add"),
        ({"channel": ["pair-noise"]}, "that of pairs cancels in the sum"),
        ({"channel": [{**NOISE, "own": False}]}, "stay without noise"),
        ({"local": {"decay": 0}}, "samples' gradients are not bounded"),
        ({"local": {"clip_samples": 1.0, "momentum": "heavy-ball"}}, "keep exact gradients from message to message"),
        ({"local": {"clip_samples": 1.0, "steps": 2}}, "keep exact gradients"),
        ({"rule": {"name": "UBAR"}}, "rule UBAR uses the receiver's data"),
        ({"channel": [{"name": "clip"}, "top-k", {**NOISE, "own": False}]}, "top-k comes before the noise"),
        ({"rounds": 0}, "nothing is sent"),
        ({"channel": [NOISE, "clip", "pair-noise"]}, "clip shortens the noise before it too"),
        ({"problem": {**DISTINCT, "partition": {"name": "drawn", "size": 200}}}, "some samples more than once"),
    ],
)
def test_no_number_where_nothing_is_proved(samples: Any, more: dict[str, Any], why: str) -> None:
    with pytest.raises(NoEpsilon, match=why):
        privacy(config(samples, **more))
