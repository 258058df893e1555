"""Files are read the same, and refused in the same words, with libyaml and without it."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import yaml

from byzmesh.config import yaml as reader
from byzmesh.config.yaml import parse_yaml
from byzmesh.errors import ConfigError

READ = ["a: 1e-3", "<<: {a: 1}\nb: 1e3", "a: &x {b: 1}\nc: *x", "a: [yes, ~, 0x1f, 2020-01-02, '1']", "7: {8: 9}"]
REFUSED = [
    "a: [1, 2",
    "a: [!, b]",
    "a: 1\na: 2",
    "1.5: 2",
    "a: 2020-99-99",
    "a: \udcff",
    "a:\t1\n\tb: 2",
    "a: !!python/name:os.system",
    "- 1",
    "a: " + 100_000 * "[",
    "a:\n" + "".join(f"{depth * ' '}- \n" for depth in range(2000)),
]


def told(text: str) -> Any:
    try:
        return parse_yaml(text, ids=True, where="file")
    except ConfigError as error:
        return str(error)


@pytest.mark.parametrize("text", [*READ, *REFUSED], ids=lambda text: repr(text[:30]))
def test_the_same_with_libyaml_and_without(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = told(text)
    assert isinstance(quick, dict if text in READ else str)
    monkeypatch.setattr(yaml, "__with_libyaml__", False)
    assert told(text) == quick


def damaged(random: Random) -> str:
    """A text that somebody mistyped."""
    text = list(
        random.choice(["a: 1\nb: [1, 'x']\nc: {d: 1e3, e: \"y\\n\"}\n", "a: &x {b: 1}\nc: *x\n", "a: >\n  z\n"])
    )
    for _ in range(random.randrange(1, 5)):
        place = random.randrange(len(text))
        text[place : place + random.randrange(2)] = random.choice(
            [*"a1.-:#,[]{}\"'\\&*!|>%@? \n\t\r~<\x85\u2028", "<<: "]
        )
    return "".join(text)


@pytest.mark.parametrize("lenient", [None, "\t?|>"])
def test_mistyped_files_are_the_same_with_libyaml_and_without(
    lenient: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If libyaml were given what it alone takes, it would show."""
    texts = [damaged(Random(seed)) for seed in range(2000)]
    if lenient:
        monkeypatch.setattr(reader, "_LENIENT", reader._LENIENT - set(lenient))
    quick = [told(text) for text in texts]
    assert 100 < sum(isinstance(value, dict) for value in quick) < 1900
    monkeypatch.setattr(yaml, "__with_libyaml__", False)
    assert ([told(text) for text in texts] == quick) is (lenient is None)


def test_libyaml_is_used_where_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml.SafeLoader, "get_single_data", lambda loader: pytest.fail("the slow one"))
    if yaml.__with_libyaml__:
        assert told("a: [1]") == {"a": [1]}
