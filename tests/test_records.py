"""Records are built by keyword: a call with many positional values is hard to read and breaks when a field is added."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import pytest

import byzmesh

MOST_POSITIONAL = 4


def records() -> Iterator[type]:
    """The dataclasses of the package."""
    for found in pkgutil.walk_packages(byzmesh.__path__, "byzmesh."):
        if found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        for item in vars(module).values():
            if isinstance(item, type) and dataclasses.is_dataclass(item) and item.__module__ == found.name:
                yield item


@pytest.mark.parametrize("record", list(records()), ids=lambda record: f"{record.__module__}.{record.__qualname__}")
def test_five_or_more_values_are_passed_by_name(record: type) -> None:
    parameters = inspect.signature(record).parameters.values()
    positional = [item.name for item in parameters if item.kind is item.POSITIONAL_OR_KEYWORD]
    assert len(positional) <= MOST_POSITIONAL, f"kw_only=True, or KW_ONLY after the first few: {positional}"
