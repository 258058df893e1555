"""Config files: YAML with overrides from the command line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from byzmesh.errors import ConfigError
from byzmesh.experiments.config import resolve


def read_yaml(path: str | Path) -> dict[str, Any]:
    """The mapping in a YAML file."""
    path = Path(path)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); give the path of a config file") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{path}{place}: is not valid YAML ({getattr(error, 'problem', None) or error})") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: must hold a mapping of options, got {type(content).__name__}")
    return content


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
        *parents, last = path.split(".")
        place = result
        for parent in parents:
            inner = place.get(parent, {})
            place[parent] = {"name": inner} if isinstance(inner, str) else dict(inner or {})
            place = place[parent]
        place[last] = yaml.safe_load(value)
    return result


def load_config(path: str | Path, settings: Iterable[str] = ()) -> dict[str, Any]:
    """The canonical config of a file with settings applied."""
    return resolve(override(read_yaml(path), settings), Path(path).parent)
