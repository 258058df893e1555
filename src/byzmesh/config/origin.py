"""Where a function, a class or a module comes from: its file, its package, and whether that is a library."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
import sysconfig
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from byzmesh.source import PACKAGE


def top(module: str) -> str:
    """The name of a module's package; the main script has another module name in a worker process."""
    return "__main__" if module == "__mp_main__" else module.partition(".")[0]


@functools.cache
def is_installed(file: str) -> bool:
    """Whether a file belongs to Python, an installed package or byzmesh, and not to the user."""
    parts = Path(file).parts
    return (
        file.startswith((PACKAGE, "<frozen", sysconfig.get_path("stdlib")))
        or "site-packages" in parts
        or "dist-packages" in parts
    )


def innermost(value: Any) -> Any:
    """The function inside a wrapper."""
    for name in () if isinstance(value, type) else ("__func__", "fget", "func", "py_func", "__wrapped__"):
        inner = getattr(value, name, None)
        if isinstance(inner, FunctionType):
            return inner
    return value


def methods(kind: type) -> list[FunctionType]:
    """The functions that a class defines, without generated ones (dataclasses)."""
    functions = [innermost(member) for member in vars(kind).values()]
    return [item for item in functions if isinstance(item, FunctionType) and item.__code__.co_filename != "<string>"]


def file_of(value: Any) -> str | None:
    """The file of a function or class, from its code or its module; None for code compiled into Python."""
    if isinstance(value, type):
        functions = [item for item in methods(value) if item.__module__ == value.__module__]
    else:
        functions = [item for item in (innermost(value),) if isinstance(item, FunctionType)]
    if functions:
        return functions[0].__code__.co_filename
    module = getattr(value, "__module__", None) or ""
    return "<input>" if module == "__main__" else getattr(sys.modules.get(module), "__file__", None)


def is_users(value: Any) -> bool:
    """Whether the code of a wrapper or an object is a user's rather than a library's."""
    function = innermost(value)
    file = file_of(function if isinstance(function, (FunctionType, type)) else type(value))
    return file is not None and not is_installed(file)


def users_module(name: str, package: str | None) -> ModuleType | None:
    """A module that a function imports, unless it is a library; `name` may be relative to a package."""
    try:
        name = importlib.util.resolve_name(name, package)
        if name not in sys.modules:
            spec = importlib.util.find_spec(name)
            if spec is None or spec.origin is None or is_installed(spec.origin) or spec.origin == "built-in":
                return None
        module = importlib.import_module(name)
    except Exception:  # any error on import will also occur when the function is called
        return None
    file = getattr(module, "__file__", None)
    return None if file is None or is_installed(file) else module
