"""Keys: every change of a field counts, no reordering does."""

import copy
import json
import math
import random
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byzmesh.errors import ConfigError
from byzmesh.store import config_key
from byzmesh.store.keys import canonical, flatten, indexed

names = st.text(st.characters(blacklist_characters="."), min_size=1, max_size=8)
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=10)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)
configs = st.dictionaries(names, values, min_size=1, max_size=6)


def same(first: Any, second: Any) -> bool:
    """Equality that distinguishes 1, 1.0 and True, and -0.0 and 0.0."""
    if type(first) is not type(second):
        return False
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[name], second[name]) for name in first)
    if isinstance(first, list):
        return len(first) == len(second) and all(map(same, first, second))
    return repr(first) == repr(second)


def reordered(value: Any, draw: random.Random) -> Any:
    if isinstance(value, dict):
        items = [(name, reordered(inner, draw)) for name, inner in value.items()]
        draw.shuffle(items)
        return dict(items)
    if isinstance(value, list):
        return [reordered(inner, draw) for inner in value]
    return value


@given(configs, st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_order_does_not_matter(config: dict[str, Any], draw: random.Random) -> None:
    assert config_key(reordered(config, draw)) == config_key(config)


@given(configs, st.data(), scalars)
@settings(max_examples=60, deadline=None)
def test_every_field_matters(config: dict[str, Any], data: st.DataObject, replacement: Any) -> None:
    changed = copy.deepcopy(config)
    place: Any = changed
    name = data.draw(st.sampled_from(sorted(changed)))
    while isinstance(place[name], dict | list) and place[name]:
        place = place[name]
        name = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
    place[name] = replacement
    assert (config_key(changed) == config_key(config)) == same(changed, config)


@given(configs, names)
@settings(max_examples=50, deadline=None)
def test_adding_a_field_matters(config: dict[str, Any], name: str) -> None:
    changed = {**config, name + "x": None} if name + "x" not in config else {}
    assert config_key(changed) != config_key(config)


@given(configs)
@settings(max_examples=40, deadline=None)
def test_canonical_json_comes_back(config: dict[str, Any]) -> None:
    text = canonical(config)
    assert same(json.loads(text), config)
    assert text.isascii()


def test_the_key_is_the_same_in_another_process() -> None:
    config = {"rule": {"name": "IOS", "f": 2}, "lr": 0.1 + 0.2, "seed": 2**70, "note": "ü"}
    code = f"from byzmesh.store import config_key; print(config_key({config!r}))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == config_key(config)


def test_mappings_and_tuples_are_dicts_and_lists() -> None:
    assert config_key({"byzantine": (7, 9)}) == config_key({"byzantine": [7, 9]})


@pytest.mark.parametrize(
    ("config", "part"),
    [
        ({"rule": {"tau": math.nan}}, "config.rule.tau = nan"),
        ({"taus": [1.0, math.inf]}, "config.taus[1] = inf"),
        ({"rule": object()}, "config.rule is a object"),
        ({1: 2}, "the name 1"),
        ({"rule": {"a.b": 1}}, "config.rule has the name 'a.b'"),
    ],
)
def test_what_json_cannot_hold_is_refused(config: dict[Any, Any], part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config_key(config)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_flatten_keeps_every_leaf() -> None:
    config = {"a": {"b": {"c": 1}, "d": {}}, "e": [], "f": [{"g": 1}]}
    assert flatten(config) == {"a.b.c": 1, "a.d": {}, "e": [], "f": [{"g": 1}]}


def test_long_leaves_are_indexed_by_hash() -> None:
    edges = [[sender, receiver] for sender in range(30) for receiver in range(30)]
    assert len(str(indexed(edges))) == 65
    assert indexed(edges) != indexed(edges[:-1])
    assert indexed(2**80) == str(2**80)
