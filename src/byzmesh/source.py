"""The source text of code in memory.

A file is read when a part of it is registered, because it may be edited while the process continues with what it has
imported.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.abc import ExecutionLoader
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

PACKAGE = str(Path(__file__).parent)
"""Folder of byzmesh."""
_TEXTS: dict[str, str] = {}
"""File -> its text when something in it was registered."""


def remember(function: Callable[..., Any]) -> None:
    """Keep the text of the files that define and register a function, unless they belong to byzmesh."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    places = [(frame.f_code.co_filename, frame.f_globals)]
    if isinstance(function, FunctionType):
        places.append((function.__code__.co_filename, function.__globals__))
    for file, names in places:
        text = None if file.startswith(PACKAGE) else text_in(file, names)
        if text:
            _TEXTS[file] = text


def text_of(file: str, names: Mapping[str, Any], codes: Collection[CodeType]) -> str | None:
    """The text of a file or cell that this code in memory comes from: as it was at registration, or as it is now.

    None where there is none: in a plain REPL, or if the file was edited after it was imported.
    """
    for text in (_TEXTS.get(file), text_in(file, names)):
        if text and compiled(text).issuperset(codes):
            return text
    return None


def text_in(file: str, names: Mapping[str, Any]) -> str | None:
    """The text of a file or a notebook cell; `names` are the globals of its module."""
    loader = names.get("__loader__")
    if isinstance(loader, ExecutionLoader):
        with contextlib.suppress(ImportError):  # the loader knows the main program by another name
            if loader.get_filename(names["__name__"]) == file:
                return loader.get_source(names["__name__"])
    linecache.checkcache(file)
    return "".join(linecache.getlines(file)) or None


@functools.lru_cache(maxsize=64)
def compiled(text: str) -> frozenset[CodeType]:
    """All code objects in a text; empty if it is not Python."""
    try:
        return frozenset(nested(compile(text, "<text>", "exec", dont_inherit=True)))
    except (SyntaxError, ValueError):
        return frozenset()


def nested(code: CodeType) -> Iterator[CodeType]:
    """A code object and all that are defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested(constant)
