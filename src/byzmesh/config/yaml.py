"""YAML files that users write, without two traps of PyYAML: it silently drops one of two equal keys, and it reads
`1e-3`, without a dot, as a string.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

import yaml

from byzmesh.errors import ConfigError

_DEEP = 3000
_LENIENT = frozenset("\t\r?|>!")
_TEXT, _WHOLE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:int"


class _Strict(yaml.constructor.SafeConstructor, yaml.resolver.Resolver):
    """What a safe loader makes of a text, but every key of a mapping must be a string and occur once."""

    keys: tuple[str, ...] = (_TEXT,)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        self.flatten_mapping(node)
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag not in self.keys:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key.value!r} is not text; put it in quotes", key.start_mark
                )
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key.value!r} is given twice; remove one", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


_Strict.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


class _WithIds(_Strict):
    """The same for files in which whole numbers are keys too: ids of peers."""

    keys = (_TEXT, _WHOLE)


@functools.cache
def _loader(parser: Any, strict: Any) -> Any:
    return type(strict.__name__, (strict, parser), {})


def _load(text: str, strict: Any = _Strict) -> Any:
    """The value of a text, read by libyaml where PyYAML has it: seven times as fast.

    What that refuses is read again without it, for the words of the refusal. What it alone takes (a tab within a line,
    a question mark within a list) or takes for something else (a lone !) it is not given, so that a file is good on
    all machines or on none. Values nested ten thousand deep would overrun its stack: a level takes a bracket or a
    column, and a list may begin in the column of its key.
    """
    deepest = text.count("[") + text.count("{") + 2 * max(map(len, text.splitlines()), default=0)
    if yaml.__with_libyaml__ and deepest < _DEEP and text.isascii() and not _LENIENT.intersection(text):
        with contextlib.suppress(yaml.YAMLError, UnicodeError):
            return yaml.load(text, _loader(yaml.CSafeLoader, strict))
    return yaml.load(text, _loader(yaml.SafeLoader, strict))


def parse_value(text: str) -> Any:
    """Read one value as in a file.

    >>> parse_value("1e-3"), parse_value("[1, two]")
    (0.001, [1, 'two'])
    """
    try:
        return _load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{text!r} is not a value: {getattr(error, 'problem', None) or error}") from error


def parse_settings(option: str, settings: Iterable[str] | None) -> dict[str, Any]:
    """Read settings `KEY=VALUE`; each value is read as in a file.

    option  the option they were given with, for messages

    >>> parse_settings("--set", ["rule.tau=1e-3", "network.byzantine=[7, 9]"])
    {'rule.tau': 0.001, 'network.byzantine': [7, 9]}
    >>> parse_settings("--param", ["k"])
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: --param takes KEY=VALUE, got 'k'; write it as k=VALUE
    """
    values = {}
    for setting in settings or ():
        key, equals, text = (part.strip() for part in setting.partition("="))
        if not equals or not key:
            raise ConfigError(f"{option} takes KEY=VALUE, got {setting!r}; write it as {key or 'KEY'}=VALUE")
        try:
            values[key] = parse_value(text)
        except ConfigError as error:
            raise ConfigError(f"{option} {key}: {error}") from error
    return values


def read_yaml(path: str | Path, *, ids: bool = False, way_out: str = "give the path of a YAML file") -> dict[Any, Any]:
    """The mapping in a YAML file.

    ids      whether whole numbers may be keys: ids of peers
    way_out  what to do if the file cannot be read

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "run.yaml")
    ...     _ = file.write_text("rule: {name: CC, tau: 1e-3}")
    ...     read_yaml(file)
    {'rule': {'name': 'CC', 'tau': 0.001}}
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"cannot read {path}: {reason}; {way_out}") from error
    return parse_yaml(text, ids=ids, where=str(path))


def parse_yaml(text: str, *, ids: bool = False, where: str) -> dict[Any, Any]:
    """The mapping in a YAML text; `where` says in messages which text.

    >>> parse_yaml("{3: a}", ids=True, where="keys")
    {3: 'a'}
    """
    try:
        content = _load(text, _WithIds if ids else _Strict)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f", line {mark.line + 1}"
        raise ConfigError(f"{where}{place}: {getattr(error, 'problem', None) or error}") from error
    except RecursionError as error:
        raise ConfigError(f"{where} is nested too deeply; write it flatter") from error
    except ValueError as error:  # a date that is none, a number of thousands of digits
        raise ConfigError(f"{where} has a value that cannot be read: {error}; put text in quotes") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{where} must contain a mapping of keys to values, got {type(content).__name__}")
    return content
