"""The identity of code that is not part of byzmesh: a short hash that changes when the code does something else.

What it covers, starting from the function that makes a part (a registered factory, `package.module:function`, or the
code of a ready-made object):

    the top-level statement of its file that contains it: the function with its decorators and defaults, or the class,
    or whatever it is defined within
    the statements of that file that bind the names it uses, and so on: helpers, classes, constants; and the statements
    that may change these when they run: loops, calls, decorators that fill a table
    the values of globals in memory, which may come from a data file, an environment variable or another module:
    numbers, texts, arrays, tensors, torch modules, and containers and dataclasses of such
    helpers from other files likewise, unless these belong to an installed package other than the part's own; of such a
    package the name that is imported; all of a module that is passed around as an object
    values captured from an enclosing call, and attributes of objects: numbers, strings, arrays, functions, objects

Whitespace, comments, docstrings, annotations, the order of definitions and everything that the function does not reach
leave the identity unchanged. So does a new version of Python if there is source text. If there is none (functions typed
into a plain REPL, or in a file that was edited after it was imported), the compiled code with its constants is used,
which differs between versions of Python.

What it does not cover: the contents of installed packages other than the part's own (a run's provenance has the
versions of the main ones); names that are put together while the code runs (`getattr(module, "f" + "g")`, `exec`);
files and environment variables that are read when a function is called, unless an option of the config names the file;
global objects of one's own classes that are filled from a file; docstrings and annotations that code reads; globals
that functions change while they run (the code that does so counts). After such a change use `--recompute`, or register
the part with a `revision`.

If an object cannot be inspected (a library opened with ctypes, a generator), the identity of its part differs in every
process, and its runs are computed again. A `revision` ends that.

What changes the identity without need: another name for a local variable, an alias or a fact in the decorator, another
way to write the same number (0.1 and 1e-1 are the same, 2 and 2.0 are not), a change to a branch that is never taken,
what a closure or a global keeps between two sweeps of one process.
"""

from __future__ import annotations

import copyreg
import functools
import hashlib
import os
import sys
import uuid
import weakref
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any

from byzmesh.config import values
from byzmesh.config.changes import UNSEEN
from byzmesh.config.origin import file_of, innermost, is_installed, is_users, methods, top
from byzmesh.config.statements import global_names, mutable, statements
from byzmesh.config.walk import CodeWalk
from byzmesh.source import text_of

DIGITS = 16
_WITHOUT_STATE = ("_thread", "threading", "_io")
"""Modules of objects that no result depends on: locks, open files."""
_OPAQUE = {"ctypes", "_ctypes", "cffi", "_cffi_backend"}
"""Modules of objects that lead to code outside Python."""


def identity(part: Any) -> str | None:
    """16 hexadecimal digits that identify a part's code; None if all of it belongs to byzmesh.

    If something cannot be inspected, its name and a number of this process follow: see the module's docstring.

    >>> from byzmesh.rules.base import rules
    >>> identity(rules.entry("IOS").factory) is None
    True
    >>> import textwrap
    >>> len(identity(textwrap.dedent))
    16
    """
    walk = _Identity()
    described = walk.describe(part, root=True)
    texts = walk.texts()
    if not texts and not walk.unseen:
        return None
    digest = hashlib.sha256("\n".join([described, *texts]).encode()).hexdigest()[:DIGITS]
    return f"{digest}{UNSEEN}{', '.join(sorted(walk.unseen))} {_session(os.getpid())}" if walk.unseen else digest


class _Identity(CodeWalk):
    """Describes values, and walks to the code that they lead to."""

    def __init__(self) -> None:
        super().__init__()
        self._described: dict[int, Any] = {}
        self._open: dict[int, Any] = {}

    def describe(self, value: Any, *, root: bool = False) -> str:
        if value is None or type(value) in values.PLAIN:
            return f"{type(value).__name__} {value!r}"
        if id(value) in self._open:
            return "itself"
        self._open[id(value)] = value
        try:
            return self._describe(value, root)
        finally:
            del self._open[id(value)]

    def _describe(self, value: Any, root: bool) -> str:
        if type(value) in values.MAPPINGS:
            pairs = (f"{self.describe(key)}: {self.describe(item)}" for key, item in value.items())
            return f"mapping {{{', '.join(pairs)}}}"
        if type(value) in (list, tuple):
            return f"{type(value).__name__} [{', '.join(self.describe(item) for item in value)}]"
        if type(value) in values.SETS:
            return f"set {{{', '.join(sorted(self.describe(item) for item in value))}}}"
        if values.is_array(value):
            objects = value.dtype.hasobject
            return f"array {value.shape} {self.describe(value.tolist())}" if objects else values.array_text(value)
        if values.is_tensor(value):
            return values.tensor_text(value)
        if isinstance(value, weakref.ref):
            return f"reference to {self.describe(value(), root=root)}"
        if isinstance(value, functools.partial):
            return f"partial {self.describe(value.func, root=root)} {self.describe([value.args, value.keywords])}"
        if isinstance(value, MethodType):
            return f"method {self.describe(value.__func__, root=root)} of {self.describe(value.__self__)}"
        if isinstance(value, FunctionType):
            if id(value) in self._described:
                return f"function {value.__qualname__}"
            self._described[id(value)] = value  # kept alive, so that no other function gets its id
            return self._function(value, root)
        if isinstance(value, type):
            return self._class(value, root)
        if isinstance(value, ModuleType):
            return self.module_text(value)
        inner = innermost(value)
        if inner is not value:  # compiled by Numba; cached, a property or otherwise wrapped
            return f"{type(value).__qualname__} around {self.describe(inner, root=root)}"
        return self._instance(value, root)

    def _function(self, function: FunctionType, root: bool) -> str:
        code = function.__code__
        name = f"function {code.co_qualname}"
        own = self.is_own(function, code.co_filename, root)
        if own:
            text = text_of(code.co_filename, function.__globals__, [code])
            parts = () if text is None else statements(text)
            start = [number for number, part in enumerate(parts) if part.first <= code.co_firstlineno <= part.last]
            if text is not None and start:
                self.follow(text, start, function.__globals__)
            else:
                self.found.add(values.code_text(code))
                defaults = self.describe([function.__defaults__, function.__kwdefaults__])
                self.found.add(f"{name} defaults {defaults}")
                for looked_up in sorted(global_names(code)):
                    self.add_looked_up(looked_up, function.__globals__, code.co_names)
        # the text of an inner function, or of a library's wrapper, does not show the values it captured
        made_with = [values.content(cell) for cell in function.__closure__ or ()]
        if "<locals>" in code.co_qualname:
            made_with += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        return f"{name} with {[self.describe(item, root=is_users(item)) for item in made_with]}"

    def _class(self, kind: type, root: bool) -> str:
        name = f"class {kind.__qualname__}"
        file = file_of(kind)
        if file is None or not self.is_own(kind, file, root) or id(kind) in self._described:
            return name
        self._described[id(kind)] = kind
        self._extension(file)
        functions = methods(kind)
        for function in functions:
            self.describe(function)
        names = vars(sys.modules[kind.__module__])
        text = text_of(file, names, [item.__code__ for item in functions if item.__code__.co_filename == file])
        start = [at for at, part in enumerate(statements(text or "")) if kind.__qualname__.split(".")[0] in part.binds]
        if text and start:
            self.follow(text, start, names)
        changing = {kind.__name__, "self", "cls"} & mutable(text or "")
        for key, member in vars(kind).items():
            constant = values.is_data(member) and (not changing or (changing == {"self"} and values.is_frozen(member)))
            if not key.startswith("__") and (constant or not start):
                self.found.add(f"{name} {key} = {self.describe(member)}")
        for base in kind.__bases__:
            self.describe(base)
        return name

    def _extension(self, file: str) -> None:
        """Add the content of a compiled module of the user's own."""
        if file.endswith(tuple(EXTENSION_SUFFIXES)) and not is_installed(file):
            self.found.add(f"{Path(file).name} {hashlib.sha256(Path(file).read_bytes()).hexdigest()}")

    def _instance(self, value: Any, root: bool) -> str:
        """An object: its class and its attributes."""
        kind = type(value)
        file = file_of(kind)
        if file is not None and self.is_own(kind, file, root):
            self.describe(kind)
        elif top(kind.__module__) != "byzmesh":
            return self._reduced(value)
        state = dict(vars(value)) if hasattr(value, "__dict__") else {}
        slots = (name for base in kind.__mro__ for name in values.slots(base) if hasattr(value, name))
        state |= {name: getattr(value, name) for name in slots if name not in ("__dict__", "__weakref__")}
        shown = [f"{key}={self.describe(item, root=is_users(item))}" for key, item in sorted(state.items())]
        shown += [
            self.describe(base(value)) for base in (*values.CONTAINERS, *values.PLAIN[1:]) if isinstance(value, base)
        ]
        return f"{kind.__module__ if top(kind.__module__) == 'byzmesh' else ''} {kind.__qualname__}({', '.join(shown)})"

    def _reduced(self, value: Any) -> str:
        """An object of a library, by what is needed to rebuild it."""
        kind = type(value)
        name = f"{kind.__module__}.{kind.__qualname__}"
        file = file_of(value) if callable(value) else None
        if file is not None:
            self._extension(file)
        if kind.__module__ in _WITHOUT_STATE:
            return name
        try:
            if _OPAQUE & {top(base.__module__) for base in kind.__mro__}:
                raise TypeError(f"{name} does not say what it leads to")
            reduce = copyreg.dispatch_table.get(kind)
            told = value.__reduce_ex__(4) if reduce is None else reduce(value)
            if isinstance(told, str):
                if not values.is_found(value, told):
                    raise TypeError(f"{name} {told} does not say where it comes from")
                return f"{name} {getattr(value, '__module__', '')} {told}"
            parts = [*told[:3], *(list(items) for items in told[3:5] if items is not None)]
            return f"{name} {[self.describe(item, root=is_users(item)) for item in parts]}"
        except (Exception, RecursionError):
            self.unseen.add(name)
            return name


@functools.cache
def _session(process: int) -> str:
    """What stands for code that cannot be seen: another text in every process, forked ones included."""
    return uuid.uuid4().hex[:DIGITS]
