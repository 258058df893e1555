"""Every sample counts the same: whose data they are, what the weights are, and what training then minimises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.config.schema import resolve
from byzmesh.errors import ConfigError

SHARES = [1, 2, 3, 10]


def prepared(samples: Any, **more: Any) -> Any:
    """The simulation; its task is one with samples."""
    return bm.prepare(**config(samples, **more))


def config(samples: Any, **more: Any) -> dict[str, Any]:
    usual = {
        "problem": {
            "name": "softmax",
            "dataset": str(samples),
            "batch": 4,
            "partition": {"name": "sizes", "shares": SHARES},
        },
        "network": {"name": "complete", "n": 4},
        "rule": "weimean",
        "rounds": 2,
    }
    return {**usual, **more}


def test_sites_keep_their_data_whoever_lies(samples: Any) -> None:
    whole = prepared(samples)
    total = whole.task.samples
    assert whole.task.sizes().tolist() == pytest.approx([total * part / 16 for part in SHARES], abs=1)
    for liar in range(4):
        liars: dict[str, Any] = {
            "network": {"name": "complete", "n": 4, "byzantine": [liar]},
            "attack": "sign-flipping",
        }
        some = prepared(samples, **liars, f=0)
        rest = [site for site in range(4) if site != liar]
        for row, site in enumerate(rest):
            assert np.array_equal(some.task.split.share(row), whole.task.split.share(site))
        flipping = prepared(samples, **{**liars, "attack": "label-flipping"}, f=0)
        assert np.array_equal(flipping.task.split.share(3), whole.task.split.share(liar)), "a liar has its own data"
        quiet = prepared(samples, network=liars["network"], objective="samples")
        assert quiet.network.samples is not None and len(quiet.network.samples) == 3
        assert quiet.network.samples.tolist() == whole.task.sizes()[rest].tolist()


def test_classes_stay_together_if_asked_for(samples: Any) -> None:
    parts = {"name": "sizes", "shares": SHARES, "order": "class"}
    mixed = prepared(samples).task.describe()
    apart = prepared(samples, problem={**config(samples)["problem"], "partition": parts}).task.describe()
    assert (apart[:3] > 0).sum() < (mixed[:3] > 0).sum()
    assert apart.sum(axis=1).tolist() == mixed.sum(axis=1).tolist()


def test_exchanges_keep_the_average_of_samples(samples: Any) -> None:
    apart = {"step": 1e-15, "dtype": "float64", "problem": {**config(samples)["problem"], "init": "normal"}}
    run = prepared(samples, objective="samples", **apart)
    before = run.network.target @ run.models
    for _ in range(3):
        run.step()
    assert run.network.target @ run.models == pytest.approx(before, abs=1e-12)
    assert np.abs(run.models.mean(axis=0) - before).max() > 1e-3
    even = prepared(samples, **apart)
    even.step()
    assert even.models.mean(axis=0) == pytest.approx(even.task.initial().mean(axis=0), abs=1e-12)


def test_the_gradient_is_that_of_all_samples(samples: Any) -> None:
    run = prepared(samples, objective="samples", measure=["gradient"], dtype="float64")
    value = run.evaluate()["gradient"]
    model, sizes = run.models.mean(axis=0), run.task.sizes()
    joined = sum(size * g for size, g in zip(sizes, run.task.local_gradients(model))) / sizes.sum()
    assert value == pytest.approx(float((joined**2).sum()))
    other = prepared(samples, measure=["gradient"], dtype="float64").evaluate()["gradient"]
    assert value != pytest.approx(other)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"objective": "sample"}, "objective must be workers or samples"),
        ({"objective": "samples", "problem": "quadratic"}, "problem quadratic has no samples to divide"),
        (
            {"objective": "samples", "network": {"name": "ring", "n": 4, "samples": [1, 2, 3, 4]}},
            "makes the weights",
        ),
        ({"objective": "samples", "process": "link-loss"}, "weights by samples are for links that stay"),
        ({"network": {"name": "ring", "n": 5}}, "shares must be 5 numbers, one per site, got 4"),
    ],
)
def test_what_makes_no_sense_is_said(samples: Any, more: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        prepared(samples, **more)


def test_the_default_is_not_part_of_a_run() -> None:
    plain = resolve({"network": "paper/two-castle"})
    assert plain == resolve({"network": "paper/two-castle", "objective": "workers"}) and "objective" not in plain
