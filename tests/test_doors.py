"""What users meet first: completion, explicit arguments, examples that run."""

from __future__ import annotations

import doctest
import inspect
import subprocess
import sys

import pytest

import byzmesh as bm
from byzmesh.catalogue import registries
from byzmesh.config.schema import KEYS

NAMES = [name for name in bm.__all__ if name not in ("__version__", "torch", "RECOMMENDED_RULE")]
"""What has a docstring: not the two strings, nor a module."""


def test_completion_shows_the_public_names_and_nothing_else() -> None:
    assert dir(bm) == sorted(bm.__all__)
    assert "simulate" in dir(bm)
    assert "importlib" not in dir(bm)


@pytest.mark.parametrize(("function", "others"), [(bm.simulate, ["progress"]), (bm.prepare, [])])
def test_arguments_are_the_keys_of_a_config(function: object, others: list[str]) -> None:
    parameters = inspect.signature(function).parameters  # type: ignore[arg-type]
    named = [name for name, parameter in parameters.items() if parameter.kind is parameter.KEYWORD_ONLY]
    assert sorted(named) == sorted([*KEYS, *others])
    assert all(parameters[name].annotation is not inspect.Parameter.empty for name in named)
    documented = inspect.getdoc(bm.simulate) or ""
    assert all(f"\n{key} " in documented for key in KEYS)


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_an_example(name: str) -> None:
    """The examples themselves run as doctests of their modules."""
    text = inspect.getdoc(getattr(bm, name)) or ""
    assert doctest.DocTestParser().get_examples(text), f"bm.{name} has no example"


def test_every_registry_has_a_door() -> None:
    """Without a `register_` function, third parties could not extend a registry."""
    doors = {name.removeprefix("register_") for name in bm.__all__ if name.startswith("register_")}
    singular = {"topologies": "topology", "processes": "process", "weights": "weights"}
    assert doors == {singular.get(kind, kind.removesuffix("s")) for kind in registries()}


def test_doors_do_not_load_what_is_heavy() -> None:
    code = "import byzmesh, sys; dir(byzmesh); print({'numba', 'torch', 'scipy', 'cryptography'} & set(sys.modules))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "set()"
