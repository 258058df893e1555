"""Filters of stored runs as users write them: `rule=ios`, `rule.name=IOS`, `rule=iterative-outlier-scissor`.

Cheap as long as the store has the names: only a name that no run has is looked up in the registries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from byzmesh.config.yaml import parse_settings
from byzmesh.errors import ConfigError, UnknownName, nearest
from byzmesh.store import Store
from byzmesh.store.fields import same


def filters(store: Store, settings: Iterable[str] | None) -> dict[str, Any]:
    """The filters that `--where` gives, for `Store.list` and for tables."""
    return spelled(store, parse_settings("--where", settings))


def one_run(store: Store, key: str | None, settings: Iterable[str] | None) -> str:
    """The given key, or that of the only run that matches the filters."""
    if key is not None:
        if settings:
            raise ConfigError("name a run either by its key or by --where")
        return key
    runs = store.list(filters(store, settings), current=True)
    if len(runs) != 1:
        raise ConfigError(
            f"{len(runs)} runs match, but one is needed: give its key (byzmesh runs list) or more --where"
        )
    return runs[0].key


def spelled(store: Store, where: Mapping[str, Any]) -> dict[str, Any]:
    """The filters with names spelled as in the runs; an unknown name is an error."""
    return {word: _value(store, word, value) for word, value in where.items()}


def _value(store: Store, word: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    stored = [name for name in store.values(word) if isinstance(name, str)]
    if any(same(name, value) for name in stored):
        return value
    from byzmesh.config.keys import registry_of

    registry = registry_of(word)
    if registry is None or not stored:
        return value
    try:
        return registry.entry(value).name
    except UnknownName:
        raise UnknownName(f"no run has {word} = {value!r}: {nearest(value, stored)}") from None
