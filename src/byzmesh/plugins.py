"""Scripts and modules that add rules, attacks, topologies, problems, metrics: anything that registers itself on import.

A plugin is a path (`mine.py`) or a dotted module (`lab.rules`). A config stores its full path or its dotted name, so
that other processes and later sessions load it too. A script may import modules beside it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "mine.py").write_text("greeting = 'hello'")
    ...     (path,) = load_plugins(["mine.py"], folder)
    >>> Path(path).name, texts_of([path])[path]
    ('mine.py', "greeting = 'hello'")
    >>> load_plugins(["nowhere.py"], "/")
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: plugin /nowhere.py: No such file or directory; give the path of a script or a module
"""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import os
import sys
import threading
import traceback
from collections.abc import Iterable, Mapping
from importlib.abc import ExecutionLoader
from pathlib import Path

from byzmesh.errors import ConfigError

_texts: dict[str, str] = {}
"""The text of every loaded script, by its path."""
_kept = threading.Event()
_lock = threading.RLock()


def load_plugins(names: Iterable[str], folder: str | Path = ".") -> list[str]:
    """Import the plugins; returns for each the name by which any process on this machine finds it again.

    folder  base of relative paths

    A script that is already loaded is loaded again only if it has changed.
    """
    with _lock:
        return [_load(name, folder) for name in names]


def keep_loaded() -> None:
    """From now on do not reload scripts, even if their files change: what worker processes need."""
    _kept.set()


def load_texts(texts: Mapping[str, str]) -> None:
    """Import scripts from their texts, on machines that do not have the files."""
    with _lock:
        for path, text in texts.items():
            _run(path, text)


def texts_of(names: Iterable[str]) -> dict[str, str]:
    """The texts of these loaded scripts, by path; installed modules are left out."""
    return {name: _texts[name] for name in names if name in _texts}


def seen_from(folder: str | Path, names: Iterable[str]) -> list[str]:
    """Scripts by their path relative to a folder, for a file there that is passed on with the scripts.

    >>> seen_from("/lab", ["/lab/code/mine.py", "lab.rules"])
    ['code/mine.py', 'lab.rules']
    """
    return [os.path.relpath(name, Path(folder).absolute()) if name.endswith(".py") else name for name in names]


def full_name(name: str, folder: str | Path) -> str:
    """A plugin as every process on this machine finds it: a script by its full path, a module by its dotted name.

    >>> full_name("code/mine.py", "/lab"), full_name("lab.rules", "/lab")
    ('/lab/code/mine.py', 'lab.rules')
    """
    if not isinstance(name, str) or not name:
        raise ConfigError(f"a plugin must be the path of a script or a module's name, got {name!r}")
    script = Path(folder).absolute() / (name if name.endswith(".py") else f"{name.replace('.', '/')}.py")
    return os.path.normpath(script) if name.endswith(".py") or script.is_file() else name


def _load(name: str, folder: str | Path) -> str:
    name = full_name(name, folder)
    if not name.endswith(".py"):
        return _import(name)
    if name in _texts and _kept.is_set():
        return name
    try:
        text = Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        if name in _texts:  # sent here as text
            return name
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"plugin {name}: {reason}; give the path of a script or a module") from error
    _run(name, text)
    return name


def _import(name: str) -> str:
    try:
        importlib.import_module(name)
    except Exception as error:
        if (
            isinstance(error, ModuleNotFoundError)
            and error.name is not None
            and f"{name}.".startswith(f"{error.name}.")
        ):
            raise ConfigError(
                f"plugin {name}: there is no module {error.name!r}; install it, or give a script's path, {name}.py"
            ) from error
        raise ConfigError(f"plugin {name}: {_reason(error, None)}") from error
    return name


def _run(path: str, text: str) -> None:
    if _texts.get(path) == text:
        return
    folder, stem = str(Path(path).parent), Path(path).stem
    if folder not in sys.path:
        sys.path.append(folder)
    name = f"byzmesh_plugin_{stem}"
    taken = sys.modules.get(name)
    while taken is not None and taken.__file__ != path:
        name += "_"
        taken = sys.modules.get(name)
    loader = _Text(path, text)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None:
        raise ConfigError(f"plugin {path}: this script cannot be imported; rename it")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    linecache.checkcache(path)
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ConfigError(f"plugin {path}{_reason(error, path)}") from error
    _texts[path] = text


class _Text(ExecutionLoader):
    """Makes a module from a text; its source is available even if there is no such file."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text

    def get_filename(self, fullname: str) -> str:
        return self.path

    def get_source(self, fullname: str) -> str:
        return self.text

    def is_package(self, fullname: str) -> bool:
        return False


def _reason(error: BaseException, path: str | None) -> str:
    """What went wrong, and in which line of the script."""
    text = " ".join(f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}".split())
    if path is None:
        return text
    number = error.lineno if isinstance(error, SyntaxError) and error.filename == path else None
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == path:
            number = frame.lineno
    return f"{'' if number is None else f', line {number}'}: {text}"
