"""What holds for every registered attack; the fault attacks; error messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import byzmesh as bm
from byzmesh.attacks import Attack, Forged, View, attack, attacks
from byzmesh.errors import ConfigError, UnknownName, UnknownOption
from tests.attacks.scenes import frozen_models, make_world, random_row_weights, random_world, scene_of, star, view_of
from tests.attacks.test_oracles import forge

FORGING = [entry.name for entry in attacks.entries() if not entry.factory().poisons_data]
SENDS_NOTHING = {"none", "silent"}
NOT_FINITE = {"nan", "infinity"}
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    # feigned-sleep is silent in some rounds; with p = 0 it is its inner attack, and its own test has the rest
    *((name, {"p": 0.0} if name == "feigned-sleep" else {}) for name in FORGING),
    *((entry.name, entry.published_options("iid")) for entry in attacks.entries() if entry.published),
    ("ascent", {"length": 10.0}),
    *((name, {"reference": reference}) for name in ("pull-back", "reflection") for reference in ("average", "round")),
    *(("threshold-riding", {"direction": direction}) for direction in ("ALIE-minus", "negative", "fiedler", "ascent")),
]


@st.composite
def views(draw: st.DrawFn) -> tuple[Any, View]:
    nodes = draw(st.integers(2, 10))
    seed = draw(st.integers(0, 10_000))
    world = random_world(seed, nodes, draw(st.integers(0, nodes - 1)), draw(st.sampled_from([0.0, 0.3, 0.7, 1.0])))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    models = frozen_models(world, draw(st.sampled_from([1, 3, 17, 600])), seed, dtype)
    view = view_of(world, models, draw(st.integers(0, 10**6)), draw(st.integers(0, 2**63)))
    return world, replace(view, before=np.roll(models, 1, axis=0))


@pytest.mark.parametrize(
    ("name", "options"), VARIANTS, ids=["-".join([name, *map(str, options.values())]) for name, options in VARIANTS]
)
@given(case=views())
@settings(max_examples=40, deadline=None)
def test_contract(name: str, options: dict[str, Any], case: tuple[Any, View]) -> None:
    check(attack(name, **options), *case)


def check(made: Attack, world: Any, view: View) -> None:
    """What holds for every attack."""
    before = view.models.copy()
    forged, state = made.forge(view, made.init(view.scene))
    pairs = [] if made.name in SENDS_NOTHING else world.pairs()
    assert list(zip(forged.liar.tolist(), forged.victim.tolist())) == pairs
    assert pairs == sorted(pairs, key=lambda pair: (pair[1], pair[0]))
    assert forged.row.dtype == np.int64 and forged.row.shape == (len(pairs),)
    assert (forged.rows is None) != (forged.combination is None)
    dense = forged.dense()
    assert sorted(set(forged.row.tolist())) == list(range(len(dense))), "every message is somebody's"
    assert dense.shape == (len(dense), view.models.shape[1]) and dense.dtype == view.models.dtype
    assert np.isfinite(dense).all() or made.name in NOT_FINITE
    for line, (b, n) in zip(forged.row, pairs):
        np.testing.assert_allclose(forged[b, n], dense[line], rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(view.models, before)
    again, _ = made.forge(view, made.init(view.scene))
    assert again.dense().tobytes() == dense.tobytes()
    later, _ = made.forge(view, state)
    assert later.dense().tobytes() == dense.tobytes(), "the state depends on the first round only"
    seen, _ = made.forge(view, made.observe(view, made.init(view.scene)))
    assert seen.dense().tobytes() == dense.tobytes(), "to have seen the round changes nothing in it"


def changes_models(view: View, forged: Forged, calls: int) -> Forged:
    view.models[0, 0] += 1.0
    return forged


def leaves_a_victim_out(view: View, forged: Forged, calls: int) -> Forged:
    return replace(forged, liar=forged.liar[1:], victim=forged.victim[1:], row=forged.row[1:])


def mixes_up_the_order(view: View, forged: Forged, calls: int) -> Forged:
    return replace(forged, liar=forged.liar[::-1], victim=forged.victim[::-1], row=forged.row[::-1])


def sends_what_nobody_gets(view: View, forged: Forged, calls: int) -> Forged:
    return replace(forged, rows=np.vstack([forged.dense(), view.models[:1]]), combination=None)


def remembers_outside_of_its_state(view: View, forged: Forged, calls: int) -> Forged:
    return replace(forged, rows=forged.dense() + view.models.dtype.type(calls), combination=None)


def is_not_finite(view: View, forged: Forged, calls: int) -> Forged:
    return replace(forged, rows=forged.dense() * np.nan, combination=None)


@pytest.mark.parametrize(
    "wrong",
    [
        changes_models, leaves_a_victim_out, mixes_up_the_order, sends_what_nobody_gets, is_not_finite,
        remembers_outside_of_its_state, None,
    ],
)  # fmt: skip
def test_the_contract_notices(wrong: Any) -> None:
    """Mutants of an attack that passes."""
    right = attack("ALIE")
    calls = 0

    def forge(view: View, state: Any) -> tuple[Forged, Any]:
        nonlocal calls
        calls += 1
        forged, state = right.forge(view, state)
        return wrong(view, forged, calls) if wrong else forged, state

    world = random_world(3, nodes=10, liars=2, probability=0.7)
    models = frozen_models(world, 6)
    models.flags.writeable = True
    case = Attack("ALIE", forge, init=right.init), world, view_of(world, models, 0, 1)
    if wrong is None:
        check(*case)
    else:
        with pytest.raises(AssertionError):
            check(*case)


def victims_told_apart(name: str, options: dict[str, Any]) -> bool:
    """Whether every victim hears something else, where their neighbours differ."""
    world = random_world(3, nodes=10, liars=2, probability=0.7)
    models = frozen_models(world, 60)
    forged = forge(attack(name, **options), world, models)
    heard = {n: forged[b, n].tobytes() for b, n in world.pairs()}
    return len(set(heard.values())) == len(heard) > 3


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *(
            (name, {})
            for name in ("pull-back", "reflection", "target", "box", "ascent", "adaptive", "threshold-riding")
        ),
        ("ascent", {"length": 10.0}),
        *(("threshold-riding", {"direction": to}) for to in ("ALIE-minus", "negative", "fiedler", "ascent")),
        *((name, {"inner": "reflection"}) for name in ("late", "alternating", "one-victim")),
        ("mixed", {"inner": "reflection", "other": "dissensus"}),
    ],
    ids=str,
)
def test_lies_are_made_for_each_victim(name: str, options: dict[str, Any]) -> None:
    assert victims_told_apart(name, options)
    assert not victims_told_apart("zero", {})


@pytest.mark.parametrize("name", [name for name in FORGING if attack(name).fixed])
def test_fixed_lies_depend_on_nothing_but_the_graph(name: str) -> None:
    made = attack(name)
    world = random_world(3, 9, 2, 0.7)
    views = [view_of(world, frozen_models(world, 5, seed, np.float64), number, 1) for seed, number in ((1, 0), (2, 70))]
    state = made.init(views[0].scene)
    first, second = (made.forge(view, state) for view in views)
    assert first[1] is second[1] is state
    one, other = first[0].combination, second[0].combination
    assert one is not None and other is not None
    np.testing.assert_array_equal(first[0].row, second[0].row)
    np.testing.assert_array_equal(one.index, other.index)
    np.testing.assert_array_equal(one.coefficient, other.coefficient)


@pytest.mark.parametrize("name", FORGING)
def test_outputs_are_not_the_inputs_memory(name: str) -> None:
    world = random_world(1)
    models = frozen_models(world, 6)
    forged = forge(attack(name), world, models)
    if len(forged.dense()):
        assert not np.shares_memory(forged.dense(), models)


@pytest.mark.parametrize("name", FORGING)
def test_a_pair_that_is_no_link_is_refused(name: str) -> None:
    world = random_world(1)
    forged = forge(attack(name), world, frozen_models(world, 6))
    with pytest.raises(KeyError, match="not a pair"):
        forged[world.honest[0], world.honest[1]]


def test_names_and_aliases() -> None:
    known = {
        "none", "gaussian", "sign-flipping", "isolation", "sample-duplicating", "ALIE", "IPM", "dissensus", "zero",
        "nan", "infinity", "huge", "silent", "label-flipping", "mimic", "same-value", "stale", "min-max", "min-sum",
        "spectral-heterogeneity", "adaptive", "backdoor", "reflection", "pull-back", "threshold-riding", "target",
        "late", "alternating", "one-victim", "mixed", "feigned-sleep", "trigger-phrase", "box", "ascent",
    }  # fmt: skip
    assert set(attacks.names()) == known
    for alias, name in [("duplicate", "sample-duplicating"), ("little", "ALIE"), ("foe", "IPM"), ("alie", "ALIE")]:
        assert attacks.entry(alias).name == name
    for entry in attacks.entries():
        made: Attack = entry.factory()
        assert made.name == entry.name and {"name": made.name, **made.options} == attacks.canonical(made)
        assert {option: value for option, value in made.options.items() if not isinstance(value, dict)} == {
            option: value for option, value in entry.options.items() if option not in ("inner", "other")
        }
        assert entry.summary.endswith(".")


@pytest.mark.parametrize("more", [{"rule": "ios"}, {"rule": "trimean"}, {"rule": "scc", "channel": "int8"}], ids=str)
def test_messages_of_another_type_are_told_in_that_of_the_models(more: dict[str, Any]) -> None:
    """A user's attack may return doubles, whole numbers or a list."""

    def saying(rows: Any) -> Any:
        def forge(view: View, state: Any) -> tuple[Forged, Any]:
            scene, row = view.scene, np.zeros(len(view.scene.liar), np.int64)
            if view.respond is not None:
                view.respond(np.tile(np.asarray(rows), (len(scene.victims), 1)))
            return Forged(scene.liar, scene.victim, row, view.models, rows=rows), state

        made = Attack("saying", forge, needs_response=True)
        problem = {"name": "quadratic", "dimension": 3, "targets": "normal"}
        return bm.simulate(problem=problem, network="paper/two-castle", attack=made, rounds=3, **more).models

    assert np.isfinite(saying(np.full((1, 3), 1e300))).all(), "infinite in float32, which counts as silence"
    told = saying(np.ones((1, 3), np.float32))
    for rows in (np.ones((1, 3)), np.ones((1, 3), int), [[1.0, 1.0, 1.0]]):
        np.testing.assert_array_equal(saying(rows), told)


def test_faults() -> None:
    world = random_world(2)
    for dtype in (np.float32, np.float64):
        models = frozen_models(world, 4, dtype=dtype)
        assert np.isnan(forge(attack("nan"), world, models).dense()).all()
        assert np.isposinf(forge(attack("infinity"), world, models).dense()).all()
        value = float(forge(attack("huge"), world, models).dense()[0, 0])
        assert value == pytest.approx(0.3 * float(np.finfo(dtype).max)) and value >= 1e38
        assert not forge(attack("zero"), world, models).dense().any()
        assert len(forge(attack("silent"), world, models)) == 0


@pytest.mark.parametrize("name", ["label-flipping", "backdoor", "trigger-phrase"])
def test_attacks_on_data_declare_it(name: str) -> None:
    world = random_world(2)
    assert attack(name).poisons_data
    with pytest.raises(ConfigError, match=f"{name} acts on training data"):
        forge(attack(name), world, frozen_models(world, 4))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("gaussian", {"std": -1.0}, "attack gaussian: std must be a number of at least 0, got -1.0"),
        ("gaussian", {"mean": "mode"}, "attack gaussian: mean must be weighted or plain, got 'mode'"),
        ("sign-flipping", {"own": "yes"}, "attack sign-flipping: own must be true or false, got 'yes'"),
        ("isolation", {"weights": "equal"}, "attack isolation: weights must be mixing or metropolis, got 'equal'"),
        ("IPM", {"eps": None}, "attack IPM: eps must be a number, got None"),
        ("dissensus", {"eps": float("inf")}, "attack dissensus: eps must be a finite number, got inf"),
        ("huge", {"fraction": 1.5}, "attack huge: fraction must be a number in [0, 1], got 1.5"),
        ("same-value", {"value": float("nan")}, "attack same-value: value must be a finite number, got nan"),
        ("stale", {"period": 1.5}, "attack stale: period must be a whole number of at least 1, got 1.5"),
        ("sample-duplicating", {"together": 1}, "attack sample-duplicating: together must be true or false, got 1"),
    ],
)
def test_bad_options(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        attack(name, **options)
    assert str(caught.value) == message


def test_unknown_names_and_options() -> None:
    with pytest.raises(UnknownName, match="did you mean 'dissensus'"):
        attack("disensus")
    with pytest.raises(UnknownOption, match="has no option 'sd'"):
        attack("gaussian", sd=2)


@pytest.mark.parametrize("name", ["isolation", "dissensus"])
def test_liars_without_weight_cannot_isolate(name: str) -> None:
    adjacency = ~np.eye(4, dtype=bool)
    weights = random_row_weights(adjacency, np.random.default_rng(0))
    weights[2, 0] = 0.0
    world = make_world(adjacency, [0], weights)
    with pytest.raises(ConfigError, match="positive mixing weight on the lying neighbours of worker 2, got 0"):
        attack(name).init(scene_of(world))


def test_neighbours_without_weight_average_plainly() -> None:
    adjacency = ~np.eye(4, dtype=bool)
    weights = np.zeros((4, 4))
    weights[:, 0] = 1.0
    world = make_world(adjacency, [0], weights)
    models = frozen_models(world, 5)
    text = forge(attack("sign-flipping"), world, models)
    np.testing.assert_allclose(text[0, 1], -(models[1] + models[2]) / 2)


def test_a_victim_without_honest_neighbours_is_told_minus_its_own_model() -> None:
    world = star(3)
    models = frozen_models(world, 5)
    forged = forge(attack("sign-flipping"), world, models)
    for row, n in enumerate(world.honest):
        np.testing.assert_allclose(forged[0, n], -models[row])
