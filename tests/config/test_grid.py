"""Grids: what they mean, in which order, and what is wrong with them."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byzmesh.config.grid import expand, read_grid
from byzmesh.config.schema import resolve
from byzmesh.config.yaml import read_yaml
from byzmesh.errors import ConfigError, UnknownOption
from byzmesh.store import config_key
from byzmesh.store.keys import flatten

BASE: dict[str, Any] = {
    "problem": "quadratic",
    "network": {"name": "ring", "n": 6, "byzantine": [1]},
    "rule": "ios",
    "rounds": 5,
}


def labels(**grid: Any) -> list[dict[str, Any]]:
    return [dict(point.labels) for point in expand({"base": BASE, **grid})]


def values(path: str, **grid: Any) -> list[Any]:
    return [flatten(point.config)[path] for point in expand({"base": BASE, **grid})]


def test_all_combinations_the_last_axis_fastest() -> None:
    found = labels(axes={"rule": ["IOS", "mean"], "seed": [3, 1]})
    assert found == [{"rule": rule, "seed": seed} for rule in ("IOS", "mean") for seed in (3, 1)]


def test_a_grid_without_axes_is_its_base() -> None:
    (point,) = expand({"base": BASE})
    assert point.config == resolve(BASE)
    assert point.key == config_key(resolve(BASE))
    assert point.labels == {}
    assert expand(BASE) == [point], "the config of one run is a grid of one point"
    with pytest.raises(UnknownOption, match="grid has no key 'rule': write it under base"):
        expand({"rule": "ios", "axes": {"seed": [0, 1]}})


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"from": 0, "to": 3}, [0, 1, 2, 3]),
        ({"from": 1, "to": 6, "step": 2}, [1, 3, 5]),
        ({"from": 5, "to": 1, "step": -2}, [5, 3, 1]),
        ({"from": 2, "to": 2}, [2]),
        ({"from": 0, "to": 10, "count": 3}, [0, 5, 10]),
    ],
)
def test_ranges_of_whole_numbers(written: dict[str, int], meant: list[int]) -> None:
    found = values("seed", axes={"seed": written})
    assert found == meant
    assert all(type(value) is int for value in found)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"from": 0.1, "to": 0.7, "step": 0.1}, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]),
        ({"from": 0, "to": 1, "step": 0.25}, [0.0, 0.25, 0.5, 0.75, 1.0]),
        ({"from": 0.5, "to": 1, "count": 3}, [0.5, 0.75, 1.0]),
        ({"from": "1e-3", "to": "3e-3", "step": "1e-3"}, [0.001, 0.002, 0.003]),
    ],
)
def test_ranges_of_decimal_numbers_are_as_written(written: dict[str, Any], meant: list[float]) -> None:
    assert values("local.decay", axes={"local.decay": written}) == meant


def test_zipped_axes_move_together_and_cross_the_others() -> None:
    found = labels(zip=[{"rounds": [10, 20], "evaluate_every": [1, 2]}], axes={"seed": [0, 1]})
    assert found == [
        {"rounds": rounds, "evaluate_every": every, "seed": seed}
        for rounds, every in ((10, 1), (20, 2))
        for seed in (0, 1)
    ]


def test_cases_set_several_values_and_keep_their_name() -> None:
    cases = {"calm": {"attack": "none"}, "storm": {"attack": "gaussian", "attack.std": 5, "f": 1}}
    points = expand({"base": BASE, "cases": cases, "axes": {"seed": [0, 1]}})
    assert [point.labels["case"] for point in points] == ["calm", "calm", "storm", "storm"]
    assert points[2].config["attack"]["std"] == 5.0
    assert points[2].config["f"] == 1


def test_a_deeper_path_changes_whatever_was_chosen_above_in_any_order() -> None:
    chosen = values("rule.tau", axes={"rule.tau": [0.5, 2], "rule": ["CC", {"name": "SCC", "tau": 9}]})
    assert chosen == [0.5, 0.5, 2.0, 2.0]


def test_points_do_not_share_what_they_change() -> None:
    points = expand({"base": {**BASE, "rule": {"name": "CC"}}, "axes": {"rule.tau": [1, 2], "seed": [0, 1]}})
    assert [(point.config["rule"]["tau"], point.config["seed"]) for point in points] == [(1, 0), (1, 1), (2, 0), (2, 1)]


def test_excludes_by_name_alias_list_and_case() -> None:
    grid = {
        "cases": {"a": {"rounds": 5}, "b": {"rounds": 6}},
        "axes": {"rule": ["TriMean", {"name": "CC", "tau": 0.1}], "seed": [0, 1, 2]},
        "exclude": [{"rule": "tm", "seed": [0, 2]}, {"rule": {"tau": 0.1}, "case": "b"}],
    }
    found = [
        (label["case"], "CC" if "tau" in str(label["rule"]) else "TriMean", label["seed"]) for label in labels(**grid)
    ]
    assert found == [
        ("a", "TriMean", 1),
        ("a", "CC", 0),
        ("a", "CC", 1),
        ("a", "CC", 2),
        ("b", "TriMean", 1),
    ]


def test_a_combination_that_is_excluded_need_not_be_valid() -> None:
    found = labels(axes={"rule": ["IOS", "CC"], "rule.tau": [1]}, exclude=[{"rule": "ios"}])
    assert [label["rule"] for label in found] == ["CC"]


def test_the_same_run_written_twice_is_one_run() -> None:
    assert labels(axes={"rule": ["mean", "WeiMean", {"name": "weimean"}]}) == [{"rule": "mean"}]


def test_files_are_relative_to_the_grid(tmp_path: Path) -> None:
    (tmp_path / "graph.edges").write_text("0 1\n1 2\n2 3\n3 0\n")
    base = {"problem": "quadratic", "network": "graph.edges", "rule": "mean", "rounds": 5}
    (tmp_path / "grid.yaml").write_text(json.dumps({"base": base, "axes": {"network.byzantine": [[0], [2]]}}))
    assert [point.config["network"]["byzantine"] for point in read_grid(tmp_path / "grid.yaml")] == [[0], [2]]


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ({"axis": {}}, "did you mean 'axes'?"),
        ({"axes": {"rul": ["ios"]}}, "did you mean 'rule'?"),
        ({"axes": {"rule.taw": [1], "rule": ["CC"]}}, "did you mean 'tau'?"),
        ({"axes": {"rule": ["ois"]}}, "(at rule = ois)"),
        ({"axes": {"seed": 3}}, "must be a list of values or a range"),
        ({"axes": {"seed": []}}, "must be a list of values or a range"),
        ({"axes": {"seed": {"from": 1, "till": 3}}}, "a range has no key 'till'"),
        ({"axes": {"seed": {"from": 1}}}, "needs from, to"),
        ({"axes": {"seed": {"from": 1, "to": 3, "step": 1, "count": 3}}}, "either step (default 1) or count"),
        ({"axes": {"seed": {"from": 1, "to": 3, "step": -1}}}, "does not lead from 1 to 3"),
        ({"axes": {"seed": {"from": 1, "to": 3, "step": 0}}}, "does not lead from 1 to 3"),
        ({"axes": {"seed": {"from": "a", "to": 3}}}, "from of a range must be a number, got 'a'"),
        ({"axes": {"seed": {"from": 1, "to": 3, "count": 1}}}, "a whole number of at least 2, got 1"),
        ({"zip": {"seed": [1]}}, "zip must be a list"),
        ({"zip": [{"seed": [1, 2], "rounds": [1]}]}, "the same length, got seed = 2, rounds = 1"),
        ({"zip": [{"seed": [1]}], "axes": {"seed": [2]}}, "sets seed in zip group 1 and in axes"),
        ({"cases": {"a": {"seed": 1}}, "axes": {"seed": [2]}}, "sets seed in cases and in axes"),
        ({"cases": {"a": 3}}, "cases a must be a mapping"),
        ({"cases": {"a": {"sed": 3}}}, "did you mean 'seed'?"),
        ({"axes": {"seed": [1]}, "exclude": [{"seed": 2}]}, "seed = 2 matches no combination"),
        ({"axes": {"seed": [1]}, "exclude": [{"seed": 1}]}, "every combination is excluded"),
        ({"axes": {"rounds.a": [1]}}, "rounds is 5, not a mapping"),
    ],
)
def test_a_mistake_is_named(grid: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        expand({"base": BASE, **grid})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("base: {seed: 1}\nbase: {seed: 2}\n", "line 2: key 'base' is given twice"),
        ("base:\n  1: 2\n", "line 2: key '1' is not text"),
        ("base: [\n", "line 2"),
        ("- 1\n", "must contain a mapping"),
    ],
)
def test_yaml_that_would_be_misread_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "grid.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_yaml(tmp_path / "grid.yaml")
    assert words in str(caught.value)


def test_numbers_in_yaml_are_numbers(tmp_path: Path) -> None:
    (tmp_path / "file.yaml").write_text("a: [1e-3, 1E6, -2.5e+3, 3, '1e3', e3]")
    assert read_yaml(tmp_path / "file.yaml") == {"a": [0.001, 1e6, -2500.0, 3, "1e3", "e3"]}


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*none\.yaml: No such file"):
        read_grid(tmp_path / "none.yaml")


# What a run is known by.

WRITTEN = {
    "problem": {"name": "softmax", "partition": {"name": "dirichlet", "alpha": 0.3}, "batch": 16},
    "network": {"name": "two-castle", "k": 4, "byzantine": [1, 6]},
    "rule": {"name": "bucketing", "inner": {"name": "cc", "tau": 0.2}, "s": 2},
    "attack": {"name": "alie"},
    "step": {"name": "inverse-sqrt", "a": 0.5},
    "local": {"decay": 0.1},
    "measure": ["gradient"],
    "seed": 4,
}


def shuffled(value: Any, draw: random.Random) -> Any:
    if isinstance(value, dict):
        items = [(key, shuffled(item, draw)) for key, item in value.items()]
        draw.shuffle(items)
        return dict(items)
    return value


@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False))
def test_order_and_defaults_written_out_do_not_change_the_key(draw: random.Random) -> None:
    key = config_key(resolve(WRITTEN))
    assert config_key(resolve(shuffled(WRITTEN, draw))) == key
    assert config_key(resolve(shuffled(resolve(WRITTEN), draw))) == key


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_change_of_any_field_changes_the_key(data: st.DataObject) -> None:
    config = resolve(WRITTEN)
    path = data.draw(st.sampled_from(sorted(flatten(config))))
    here = config
    *way, last = path.split(".")
    for part in way:
        here = here[part]
    was = here[last]
    others = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(), st.none())
    here[last] = data.draw(others.filter(lambda value: (type(value), value) != (type(was), was)))
    assert config_key(config) != config_key(resolve(WRITTEN))


def test_every_field_of_a_config_is_in_its_key() -> None:
    fields = set(flatten(resolve(WRITTEN)))
    assert {"seed", "rule.inner.tau", "problem.partition.alpha", "threads", "dtype", "step.b", "local.beta"} <= fields


def test_random_grids_expand_to_each_run_once() -> None:
    draw = random.Random(0)
    for _ in range(10):
        axes = {
            "seed": [draw.randrange(4) for _ in range(draw.randrange(1, 6))],
            "rounds": [draw.randrange(1, 4) for _ in range(draw.randrange(1, 4))],
        }
        points = expand({"base": BASE, "axes": axes})
        wanted = dict.fromkeys((seed, rounds) for seed in axes["seed"] for rounds in axes["rounds"])
        assert [(point.config["seed"], point.config["rounds"]) for point in points] == list(wanted)
        assert len({point.key for point in points}) == len(points)


@pytest.mark.parametrize("nobody", [0, [], "none"])
def test_where_a_grid_counts_liars_nobody_is_the_baseline_without_an_attack(nobody: Any) -> None:
    axes = {"attack": ["alie", "sign-flipping"], "network.byzantine": [nobody, 1, 2]}
    cells = expand({"base": BASE, "axes": axes})
    told = [(cell.config["attack"]["name"], len(cell.config["network"]["byzantine"]), cell.note) for cell in cells]
    assert told == [
        ("none", 0, "nobody lies: run with attack none"),
        ("ALIE", 1, ""),
        ("ALIE", 2, ""),
        ("sign-flipping", 1, ""),
        ("sign-flipping", 2, ""),
    ]
    assert cells[0].labels == {"attack": "none", "network.byzantine": nobody}
    assert cells[0].key == expand({"base": {**BASE, "network": {**BASE["network"], "byzantine": nobody}}})[0].key


def test_options_of_the_attack_are_no_label_of_the_baseline() -> None:
    cells = expand(
        {
            "base": {**BASE, "attack": "ipm"},
            "cases": {"none": {"network.byzantine": "none"}, "one": {"network.byzantine": [1]}},
            "axes": {"attack.eps": [0.5, 0.9]},
        }
    )
    assert [dict(cell.labels) for cell in cells] == [
        {"case": "none", "attack": "none"},
        {"case": "one", "attack.eps": 0.5},
        {"case": "one", "attack.eps": 0.9},
    ]


def test_an_attack_where_nobody_lies_is_a_mistake_otherwise() -> None:
    ring = {"name": "ring", "n": 6}
    with pytest.raises(ConfigError, match=r"attack ALIE: nobody lies here; .* \(at seed = 3\)$"):
        expand({"base": {**BASE, "network": ring, "attack": "alie"}, "axes": {"seed": [3, 4]}})
    with pytest.raises(ConfigError, match="attack ALIE: nobody lies here"):
        expand({"base": {**BASE, "attack": "alie"}, "axes": {"network": [ring, "paper/two-castle"]}})
