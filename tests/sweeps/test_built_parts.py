"""Ready-made parts in `simulate` and `prepare`: a profile applies to them or is refused; nothing can be reassigned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.errors import ConfigError, NoLiars
from byzmesh.simulation.engine import Simulation
from byzmesh.simulation.run import Run
from byzmesh.sweeps.build import build
from tests.simulation.small import write_data

Ways = Callable[..., Any]
WAYS = [bm.simulate, bm.prepare]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


def paper(data: Path, **more: Any) -> dict[str, Any]:
    """A short run under the profile `paper`."""
    parts = {
        "problem": {"name": "softmax", "dataset": str(data), "batch": 8},
        "network": "paper/two-castle",
        "rule": "cc",
        "attack": "sign-flipping",
        "rounds": 5,
        "evaluate_every": 5,
        "profile": "paper",
    }
    return {**parts, **more}


def ended(made: Run | Simulation) -> Run:
    return made.run() if isinstance(made, Simulation) else made


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("part", "made", "wanted"),
    [
        ("problem", lambda data: bm.problem("softmax", dataset=str(data)), "batching='consecutive', init='normal'"),
        ("rule", lambda data: bm.rule("cc"), "centre='memory', tau=0.1"),
        ("rule", lambda data: bm.nnm("coomed"), "CooMed is already built, and not with even='lower'"),
        ("attack", lambda data: bm.attack("sign-flipping"), "own=True, mean='plain'"),
    ],
)
def test_a_profile_that_cannot_be_applied_is_refused(
    data: Path, way: Ways, part: str, made: Callable[[Path], Any], wanted: str
) -> None:
    given = made(data)
    with pytest.raises(ConfigError, match=rf"^profile: {part} (.* )?{wanted}.*; build it with that, or give its name"):
        way(**paper(data, **{part: given}))
    assert ended(way(**paper(data, profile=None, **{part: given}))).status == "finished"


@pytest.mark.parametrize("way", WAYS)
def test_parts_as_the_profile_wants_them_are_the_run_by_names(data: Path, way: Ways) -> None:
    published = {"batching": "consecutive", "init": "normal", "scale": 6.0}
    parts = {
        "problem": bm.problem("softmax", dataset=str(data), batch=8, **published),
        "rule": bm.rule("cc", centre="memory", tau=0.1),
        "attack": bm.attack("sign-flipping", own=True, mean="plain"),
        "network": bm.network("paper/two-castle"),  # profiles say nothing of networks
    }
    named = ended(way(**paper(data)))
    for part, made in parts.items():
        built = ended(way(**paper(data, **{part: made})))
        if part != "network":  # whose object is written by its edges
            assert built.config == named.config
        assert np.array_equal(built.models, named.models)


@pytest.mark.parametrize("way", WAYS)
def test_parts_that_no_profile_knows_are_used_as_they_are(data: Path, way: Ways) -> None:
    def halfway(own: Any, received: Any, weights: Any, f: int) -> Any:
        return 0.5 * own + 0.5 * received.mean(axis=0)

    assert ended(way(**paper(data, rule=halfway))).status == "finished"
    assert ended(way(**paper(data, problem="quadratic", rule=bm.rule("ios")))).status == "finished"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("network", [{"name": "ring", "n": 5}, bm.network("ring", n=5)])
@pytest.mark.parametrize("attack", ["alie", bm.attack("label-flipping")])
def test_an_attack_where_nobody_lies_is_refused(way: Ways, network: Any, attack: Any) -> None:
    with pytest.raises(NoLiars, match=r"nobody lies here; say who does .byzantine: .*, or take attack none$"):
        way(problem="quadratic", network=network, attack=attack)


def test_simulations_refuse_an_attack_without_liars_too(data: Path) -> None:
    made = bm.prepare(**paper(data))
    parts = {field.name: getattr(made, field.name) for field in fields(made)}
    with pytest.raises(NoLiars, match="attack sign-flipping: nobody lies here"):
        Simulation(**{**parts, "network": made.network.honest_only()})


def test_a_stored_config_with_an_attack_and_no_liars_can_still_be_built() -> None:
    config = bm.prepare(problem="quadratic", network={"name": "ring", "n": 5}, rounds=3).config
    before = build({**config, "attack": {"name": "IPM", "eps": 0.5}}).run()
    assert np.array_equal(before.models, build(config).run().models)
    assert before.config["attack"]["name"] == "IPM"


@pytest.mark.parametrize("name", [field.name for field in fields(Simulation)])
def test_what_a_simulation_was_built_with_cannot_be_changed(name: str) -> None:
    made = bm.prepare(problem="quadratic", network={"name": "ring", "n": 5}, rounds=3)
    with pytest.raises(ConfigError, match=f"^{name} of a simulation cannot be changed; build another simulation"):
        setattr(made, name, getattr(made, name))
    assert made.run().rounds == 3
