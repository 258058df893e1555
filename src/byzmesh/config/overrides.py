"""The config file of one run: YAML, with settings from the command line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from byzmesh.config.keys import assign
from byzmesh.config.paths import anchor
from byzmesh.config.schema import resolve
from byzmesh.config.yaml import parse_settings, read_yaml


def override(config: dict[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """The config with `a.b=c` settings applied; values are read as YAML.

    >>> override({"rule": "cc"}, ["rule.tau=0.1", "rounds=10"])
    {'rule': {'name': 'cc', 'tau': 0.1}, 'rounds': 10}
    """
    result = dict(config)
    for path, value in parse_settings("--set", settings).items():
        assign(result, path, value)
    return result


def load_config(path: str | Path, settings: Iterable[str] | None = (), plugins: Iterable[str] = ()) -> dict[str, Any]:
    """The canonical config of a file with settings applied.

    File names in the file are relative to its folder, those in a setting to the current folder.

    plugins  loaded in addition to those that the file names
    """
    return resolve(with_plugins(read_config(path, settings or ()), plugins))


def read_config(path: str | Path, settings: Iterable[str] = ()) -> dict[str, Any]:
    """The config of a file as written, with settings applied and all file names absolute."""
    written = anchor(read_yaml(path), Path(path).parent)
    return anchor(override(written, settings), Path())


def with_plugins(config: dict[str, Any], plugins: Iterable[str]) -> dict[str, Any]:
    """The config or grid with these plugins added to those that it names.

    >>> with_plugins({"plugins": "mine.py", "seed": 3}, ["/lab/rules.py"])
    {'plugins': ['mine.py', '/lab/rules.py'], 'seed': 3}
    """
    given = config.get("plugins") or []
    named = [*([given] if isinstance(given, str) else given), *plugins]
    return {**config, "plugins": named} if named else config
