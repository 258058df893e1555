"""Config files of one run: YAML with settings from the command line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from byzmesh.config.keys import place
from byzmesh.config.schema import resolve
from byzmesh.config.yaml import parse_value, read_yaml
from byzmesh.errors import ConfigError


def override(config: dict[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """The config with `a.b=c` settings applied; values are read as YAML.

    >>> override({"rule": "cc"}, ["rule.tau=0.1", "rounds=10"])
    {'rule': {'name': 'cc', 'tau': 0.1}, 'rounds': 10}
    """
    result = dict(config)
    for setting in settings:
        path, equals, value = setting.partition("=")
        if not equals or not path:
            raise ConfigError(f"--set takes KEY=VALUE such as rule.tau=0.1, got {setting!r}")
        place(result, path, parse_value(value))
    return result


def load_config(path: str | Path, settings: Iterable[str] = ()) -> dict[str, Any]:
    """The canonical config of a file with settings applied."""
    return resolve(override(read_yaml(path), settings), Path(path).parent)
