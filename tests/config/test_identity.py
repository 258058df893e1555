"""Which edits of a part change its identity, and which do not."""

from __future__ import annotations

import functools
import importlib
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.config.identity import identity
from byzmesh.source import remember

NUMBER = itertools.count()

BASE = '''
"""A rule of one's own."""
import math
from dataclasses import dataclass
import helpers_of_mine
from helpers_of_mine import twice, LIMIT

TAU = 0.1
TABLE = {"a": 1}
TABLE["b"] = 2
UNUSED = 3


@dataclass
class Options:
    own: float = 0.5


class Scale:
    factor = 2.0

    def apply(self, x):
        return self.factor * x


def helper(x):
    "What it does."
    return deeper(x) + TAU


def deeper(x):
    return x * TABLE["b"]


def unrelated(x):
    return x


def rule(own: float = 0.5):
    """The rule."""
    # a comment
    rounds = 3

    def apply(x):
        seen = helper(x) + Options().own + Scale().apply(x) + twice(x) + helpers_of_mine.thrice(x)
        return seen + math.pi * rounds + LIMIT

    return apply


if __name__ == "__main__":
    rounds = 100
    print(rule()(1.0))
'''
HELPERS = """
LIMIT = 7
FACTOR = 2


def twice(x):
    return FACTOR * x


def thrice(x):
    return 3 * x


def never(x):
    return 4 * x
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for name in ("helpers_of_mine", "rule_of_mine"):
        sys.modules.pop(name, None)


def load(folder: Path, text: str, helpers: str = HELPERS) -> Any:
    """A fresh module of this text beside its helpers."""
    place = folder / f"part{next(NUMBER)}"
    place.mkdir()
    (place / "helpers_of_mine.py").write_text(helpers)
    (place / "rule_of_mine.py").write_text(text)
    for name in ("helpers_of_mine", "rule_of_mine"):
        sys.modules.pop(name, None)
    sys.path.insert(0, str(place))
    try:
        return importlib.import_module("rule_of_mine")
    finally:
        sys.path.remove(str(place))


def of(folder: Path, text: str, helpers: str = HELPERS) -> str | None:
    """The identity of the rule."""
    return identity(load(folder, text, helpers).rule)


CHANGES = [
    ("rounds = 3\n\n", "rounds = 4\n\n"),
    ("own: float = 0.5):", "own: float = 0.6):"),
    ("TAU = 0.1", "TAU = 0.2"),
    ("TAU = 0.1", "TAU = 0.1\nTAU += 0.1"),
    ('TABLE["b"] = 2', 'TABLE["b"] = 3'),
    ('TABLE["b"] = 2', 'TABLE["b"] = 2\nTABLE.update(b=3)'),
    ('return x * TABLE["b"]', 'return x / TABLE["b"]'),
    ("    own: float = 0.5\n", "    own: float = 0.6\n"),
    ("factor = 2.0", "factor = 3.0"),
    ("return self.factor * x", "return self.factor + x"),
    ("def helper(x):", "def helper(x, y=1):"),
    ("def rule(", "@__import__('functools').cache\ndef rule("),
    ("TAU = 0.1", "if LIMIT:\n    TAU = 0.3\nelse:\n    TAU = 0.1"),
    ("TAU = 0.1", "for TAU in (0.1, 0.2):\n    pass"),
    ("math.pi", "math.e"),
]
SAME = [
    ('"""The rule."""', '"""Another text."""'),
    ('    "What it does."\n', ""),
    ("# a comment", "# another comment\n\n"),
    ("def rule(own: float = 0.5):", "def rule(own: int=0.5) -> object:"),
    ("TAU = 0.1", "TAU: float = 1e-1"),
    ("return x\n", "return 2 * x\n"),
    ("UNUSED = 3", "UNUSED = 4"),
    ("rounds = 100", "rounds = 200"),
    ("return deeper(x) + TAU", "return (deeper(x)\n            + TAU)"),
    ("import math\n", "import math\nimport json\n"),
    ('TABLE["b"] = 2\nUNUSED = 3\n', "UNUSED = 3\nTABLE['b'] = 2\n"),
    ("    rounds = 3\n", "    rounds: int = 3\n"),
]


@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_an_edit_that_may_change_results_changes_the_identity(folder: Path, old: str, new: str) -> None:
    assert old in BASE
    assert of(folder, BASE) != of(folder, BASE.replace(old, new, 1))


@pytest.mark.parametrize(("old", "new"), SAME)
def test_an_edit_of_words_does_not_change_the_identity(folder: Path, old: str, new: str) -> None:
    assert old in BASE
    assert of(folder, BASE) == of(folder, BASE.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("FACTOR = 2", "FACTOR = 3", False),
        ("LIMIT = 7", "LIMIT = 8", False),
        ("return 3 * x", "return 3.5 * x", False),
        ("return 4 * x", "return 5 * x", True),
        ("LIMIT = 7", "LIMIT = 3 + 4", True),  # an imported value counts as such
    ],
)
def test_helpers_in_the_same_folder_are_seen(folder: Path, old: str, new: str, same: bool) -> None:
    assert (of(folder, BASE) == of(folder, BASE, HELPERS.replace(old, new, 1))) == same


def test_byzmesh_and_libraries_have_no_identity_of_their_own() -> None:
    from byzmesh.attacks.base import attacks
    from byzmesh.problems.base import problems
    from byzmesh.rules.base import rules
    from byzmesh.training.metrics import metrics

    for registry in (rules, attacks, problems, metrics):
        for name in registry.names():
            factory = registry.entry(name).factory
            if factory.__module__.startswith("byzmesh."):
                assert identity(factory) is None, name
    assert identity(bm.rule("IOS")) is None


def make(scale: Any) -> Callable[[float], Any]:
    def apply(x: float) -> Any:
        return scale * x

    return apply


@pytest.mark.parametrize(
    ("one", "other"), [(1, 2), (1, 1.0), ("a", "b"), ([1], [2]), ({"a": 1}, {"a": 2}), (np.ones(2), np.zeros(2))]
)
def test_what_a_closure_captured_counts(one: Any, other: Any) -> None:
    assert identity(make(one)) == identity(make(one)) != identity(make(other))


def test_functions_in_wrappers_and_objects_are_seen(folder: Path) -> None:
    first, second = (load(folder, BASE.replace("TAU = 0.1", f"TAU = {tau}")) for tau in (0.1, 0.2))

    def wrapped(function: Callable[..., Any]) -> list[Any]:
        block = bm.gram_rule("mine", lambda block: function()(block))
        return [functools.partial(function, own=1.0), functools.lru_cache(function), block, make(function)]

    for one, other in zip(wrapped(first.rule), wrapped(second.rule), strict=True):
        assert identity(one) != identity(other), one
    assert identity(functools.partial(first.rule, own=1.0)) != identity(functools.partial(first.rule, own=2.0))
    assert identity(first.Scale) != identity(load(folder, BASE.replace("factor = 2.0", "factor = 3.0")).Scale)
    assert identity(first.Scale().apply) == identity(second.Scale().apply)


def test_the_identity_is_of_the_code_in_memory(folder: Path) -> None:
    module = load(folder, BASE)
    remember(module.rule)
    before = identity(module.rule)
    path = Path(module.__file__)
    path.write_text(path.read_text().replace("TAU = 0.1", "TAU = 0.25"))
    assert identity(module.rule) == before  # edited, not yet imported anew
    sys.path.insert(0, str(path.parent))
    try:
        importlib.reload(module)
    finally:
        sys.path.remove(str(path.parent))
    remember(module.rule)
    assert identity(module.rule) != before


def in_process(code: str, folder: Path, **environment: str) -> str:
    told = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={**os.environ, **environment},
    )
    return told.stdout.strip()


def test_it_is_the_same_in_every_process(folder: Path) -> None:
    module = load(folder, BASE)
    place, name = Path(module.__file__).parent, module.__name__
    code = f"import {name}; from byzmesh.config.identity import identity; print(identity({name}.rule))"
    for seed in ("1", "2"):
        assert in_process(code, place, PYTHONHASHSEED=seed) == identity(module.rule)


TYPED = """
code = '''
TAU = {tau}
def helper(x):
    "{doc}"
    return x * TAU + (x in {{"a", "b", "c"}})
def rule(own={own}):
    return lambda x: helper(x) + own
'''
names = {{"__name__": "__main__"}}
exec(compile(code, "<stdin>", "exec"), names)
from byzmesh.config.identity import identity
print(identity(names["rule"]))
"""


def test_it_stays_when_parts_of_a_registry_that_it_names_are_used(folder: Path) -> None:
    text = "from byzmesh.attacks.base import attacks\ndef rule():\n    return attacks.build('ALIE')\n"
    module = load(folder, text)
    names = module.attacks.names()  # what it holds is loaded now
    before = identity(module.rule)
    for name in names:
        assert isinstance(module.attacks.entry(name).options, dict)
    assert identity(module.rule) == before


def test_without_source_the_compiled_code_stands_for_it(tmp_path: Path) -> None:
    base = in_process(TYPED.format(tau=1, doc="One.", own=2), tmp_path, PYTHONHASHSEED="1")
    assert in_process(TYPED.format(tau=1, doc="Another.", own=2), tmp_path, PYTHONHASHSEED="2") == base
    assert in_process(TYPED.format(tau=2, doc="One.", own=2), tmp_path) != base
    assert in_process(TYPED.format(tau=1, doc="One.", own=3), tmp_path) != base
