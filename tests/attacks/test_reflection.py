"""What a reflection remembers, and that a resumed run remembers it too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzmesh.attacks import attack
from byzmesh.errors import ConfigError
from byzmesh.sweeps.build import prepare
from tests.attacks.scenes import frozen_models, random_world, view_of


def test_the_start_is_kept_and_the_average_follows() -> None:
    world = random_world(4)
    first, second = frozen_models(world, 5, seed=1), frozen_models(world, 5, seed=2)
    for reference, memory in (("start", 0.99), ("average", 0.25)):
        made = attack("reflection", reference=reference, memory=memory)
        _, state = made.forge(view_of(world, first), made.init(view_of(world, first).scene))
        forged, _ = made.forge(view_of(world, second, 1), state)
        about = first.mean(axis=0) if reference == "start" else 0.25 * first.mean(axis=0) + 0.75 * second.mean(axis=0)
        liar, victim = world.pairs()[0]
        rows = [world.honest.index(m) for m in [victim, *world.honest_neighbours(victim)]]
        np.testing.assert_allclose(forged[liar, victim], 2.0 * about - second[rows].mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize(
    "spec",
    [
        {"name": "reflection", "reference": "average"},
        {"name": "pull-back", "reference": "start"},
        {"name": "alternating", "inner": {"name": "reflection", "reference": "start"}, "period": 4},
        {"name": "mixed", "inner": "stale", "other": "pull-back"},
        {"name": "adaptive", "horizon": 4},
    ],
    ids=lambda spec: spec["name"],
)
def test_a_resumed_run_remembers(spec: Any, tmp_path: Path) -> None:
    """Wrong if a state is rebuilt by `init`: the reference would then be that of the round of the checkpoint."""
    problem = {"name": "softmax", "partition": "one-class", "init": "zero"}
    config = {"problem": problem, "network": "paper/two-castle", "rule": "ios", "attack": spec, "rounds": 11}
    config |= {"local": {"momentum": "heavy-ball"}, "evaluate_every": 6}
    whole = prepare(**config)
    whole.run()
    half = prepare(**config)
    next(record for record in half if record["round"] == 6)
    half.save(tmp_path / "checkpoint")
    resumed = prepare(**config)
    resumed.restore(tmp_path / "checkpoint")
    resumed.run()
    assert resumed.models.tobytes() == whole.models.tobytes()
    forgetful = prepare(**config)
    forgetful.restore(tmp_path / "checkpoint")
    forgetful.attack_state = forgetful.attack.init(forgetful.scene)
    forgetful.run()
    if spec["name"] != "adaptive":  # it may choose the same again
        assert forgetful.models.tobytes() != whole.models.tobytes()


def test_at_the_start_of_the_round_it_flips_the_pseudo_gradient() -> None:
    """before - (half - before), in a run with several local steps per round."""
    config: dict[str, Any] = {"problem": "softmax", "network": {"name": "complete", "n": 4, "byzantine": [2]}}
    config |= {"rule": "mean", "attack": {"name": "reflection", "reference": "round"}, "local": {"steps": 3}}
    run = prepare(**config, rounds=2, dtype="float64")
    for _ in range(2):
        before = run.models.copy()
        run.step()
        progress = run.half.mean(axis=0) - before.mean(axis=0)
        # three honest messages and the lie, each with a quarter: half of the progress is left
        np.testing.assert_allclose(run.models, (before.mean(axis=0) + 0.5 * progress)[None].repeat(3, 0), atol=1e-12)


@pytest.mark.parametrize("name", ["reflection", "pull-back"])
def test_peers_do_not_know_it(name: str) -> None:
    world = random_world(4)
    view = view_of(world, frozen_models(world, 5, seed=1))
    made = attack(name, reference="round")
    with pytest.raises(ConfigError, match=f"attack {name}: reference round needs models that peers do not send"):
        made.forge(view, made.init(view.scene))
