"""The identity of code that is not part of byzmesh: a short hash that changes when the code does something else.

What it covers, starting from the function that makes a part (a registered factory, `package.module:function`, or the
code of a ready-made object):

    the top-level statement of its file that contains it: the function with its decorators and defaults, or the class,
    or whatever it is defined within
    the statements of that file that bind the names it uses, and so on: helpers, classes, constants; for constants also
    the value in memory, which may come from a data file, an environment variable or another module
    helpers from other files likewise, unless these belong to an installed package other than the part's own
    values captured from an enclosing call, and attributes of objects: numbers, strings, arrays, functions, objects

Whitespace, comments, docstrings, annotations, the order of a file's statements and everything that the function does
not reach leave the identity unchanged. So does a new version of Python if there is source text. If there is none
(functions typed into a plain REPL, or in a file that was edited after it was imported), the compiled code with its
constants is used, which differs between versions of Python.

What it does not cover: installed packages other than the part's own (a run's provenance has the versions of the main
ones); names that are looked up as strings (`getattr(module, "f" + "g")`, `importlib`, `exec`); files that are read when
a function is called, unless an option of the config names the file; what functions change while they run. After such a
change use `--recompute`, or register the part with a `revision`.

If an object cannot be inspected (a library opened with ctypes, a generator), the identity of its part differs in every
process, and its runs are computed again. A `revision` ends that.

What changes the identity without need: another name for a local variable, an alias or a fact in the decorator, another
way to write the same number (0.1 and 1e-1 are the same, 2 and 2.0 are not), a change to a branch that is never taken.
"""

from __future__ import annotations

import collections
import copyreg
import functools
import hashlib
import os
import sys
import uuid
from collections.abc import Iterable, Mapping, Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

from byzmesh.config.changes import UNSEEN
from byzmesh.config.origin import file_of, innermost, is_installed, is_users, methods, top, users_module
from byzmesh.source import global_names, mutable, statements, text_of

DIGITS = 16
_HAS_DOCSTRING = 0x4000000
_FUNCTION = 0x0002
_PLAIN: tuple[type[Any], ...] = (bool, int, float, complex, str, bytes)
_MAPPINGS = (dict, collections.OrderedDict, MappingProxyType)
_CONTAINERS: tuple[type[Any], ...] = (dict, list, tuple, set, frozenset)
_WITHOUT_STATE = ("_thread", "threading", "_io", "weakref", "_weakref")
"""Modules of objects that no result depends on: locks, open files, references."""
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
    walk = _Walk()
    described = walk.describe(part, root=True)
    if not walk.found and not walk.unseen:
        return None
    digest = hashlib.sha256("\n".join([described, *sorted(walk.found)]).encode()).hexdigest()[:DIGITS]
    return f"{digest}{UNSEEN}{', '.join(sorted(walk.unseen))} {_session(os.getpid())}" if walk.unseen else digest


class _Walk:
    """Walks from a part to all code that it depends on.

    found   one text for each statement, value, or compiled function where there is no source
    unseen  types of objects whose state cannot be inspected
    """

    def __init__(self) -> None:
        self.found: set[str] = set()
        self.unseen: set[str] = set()
        self._tops: set[str] = set()
        self._followed: set[tuple[str, int]] = set()
        self._described: dict[int, Any] = {}
        self._open: dict[int, Any] = {}

    def describe(self, value: Any, *, root: bool = False) -> str:
        """A text for a value, the same in every process; code that it leads to is added to `found`."""
        if value is None or type(value) in _PLAIN:
            return f"{type(value).__name__} {value!r}"
        if id(value) in self._open:
            return "itself"
        self._open[id(value)] = value
        try:
            return self._describe(value, root)
        finally:
            del self._open[id(value)]

    def _describe(self, value: Any, root: bool) -> str:
        if type(value) in _MAPPINGS:
            pairs = (f"{self.describe(key)}: {self.describe(item)}" for key, item in value.items())
            return f"mapping {{{', '.join(pairs)}}}"
        if type(value) in (list, tuple):
            return f"{type(value).__name__} [{', '.join(self.describe(item) for item in value)}]"
        if type(value) in (set, frozenset):
            return f"set {{{', '.join(sorted(self.describe(item) for item in value))}}}"
        if _is_array(value):
            if value.dtype.hasobject:
                return f"array {value.shape} {self.describe(value.tolist())}"
            return f"array {value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
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
            return self._module(value)
        inner = innermost(value)
        if inner is not value:  # compiled by Numba; cached, a property or otherwise wrapped
            return f"{type(value).__qualname__} around {self.describe(inner, root=root)}"
        return self._instance(value, root)

    def _own(self, thing: Any, file: str, root: bool) -> bool:
        """Whether to follow code: it is the user's, not byzmesh's or that of a library."""
        module = thing.__globals__.get("__name__") if isinstance(thing, FunctionType) else thing.__module__
        return self._is_own(module or "", file, root)

    def _is_own(self, module: str, file: str, root: bool = False) -> bool:
        package = top(module)
        if package == "byzmesh" and is_installed(file):
            return False
        if root:
            self._tops.add(package)
        return package in self._tops or (package == "__main__" if file.startswith("<") else not is_installed(file))

    def _function(self, function: FunctionType, root: bool) -> str:
        code = function.__code__
        name = f"function {code.co_qualname}"
        own = self._own(function, code.co_filename, root)
        if own:
            text = text_of(code.co_filename, function.__globals__, [code])
            parts = () if text is None else statements(text)
            start = [number for number, part in enumerate(parts) if part.first <= code.co_firstlineno <= part.last]
            if text is not None and start:
                self._follow(text, start, function.__globals__)
            else:
                self.found.add(_bytes_of(code))
                defaults = self.describe([function.__defaults__, function.__kwdefaults__])
                self.found.add(f"{name} defaults {defaults}")
                for looked_up in sorted(global_names(code)):
                    self._global(looked_up, function.__globals__, code.co_names)
        # the text of an inner function, or of a library's wrapper, does not show the values it captured
        made_with = [_content(cell) for cell in function.__closure__ or ()]
        if "<locals>" in code.co_qualname:
            made_with += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        return f"{name} with {[self.describe(item, root=is_users(item)) for item in made_with]}"

    def _follow(self, text: str, start: Iterable[int], names: Mapping[str, Any]) -> None:
        """Add statements of a source text and everything they depend on."""
        parts = statements(text)
        changing = mutable(text)
        waiting = list(start)
        while waiting:
            number = waiting.pop()
            if (text, number) in self._followed:
                continue
            self._followed.add((text, number))
            part = parts[number]
            self.found.add(part.tree)
            for name in sorted(part.loads):
                value = names.get(name)
                here = [at for at, other in enumerate(parts) if name in other.binds]
                waiting += here
                ours = here or (isinstance(value, ModuleType) and self._own_module(value))
                waiting += [at for at, other in enumerate(parts) if name in (other.changes if ours else other.sets)]
                sources = [item[1:] for other in parts for item in other.imports if item[0] == name]
                for module, there in sources:
                    self._imported(module, there, names)
                known = here and not sources and not isinstance(innermost(value), (FunctionType, type, ModuleType))
                if not known or (_is_constant(value) and name not in changing):
                    self._live(name, value, _paths(name, part.attributes))
            for name, module, there in part.imports:
                self._imported(module, there, names, _paths(name, part.attributes))

    def _imported(self, name: str, there: str, names: Mapping[str, Any], dotted: Iterable[Sequence[str]] = ()) -> None:
        """Add what an import brings from a module of the user's own."""
        module = users_module(name, names.get("__package__"))
        if module is not None:
            for path in [[there]] if there not in ("", "*") else dotted:
                self._member(module, path)

    def _live(self, name: str, value: Any, dotted: Iterable[Sequence[str]] = ()) -> None:
        """Add the value of a global name."""
        if isinstance(value, ModuleType):
            for path in dotted:
                self._member(value, path)
        elif isinstance(innermost(value), (FunctionType, type)):
            file = file_of(value)
            if file is not None and self._own(innermost(value), file, False):
                self.describe(value)
        elif value is not None:
            self.found.add(f"{name} = {self.describe(value)}")

    def _member(self, module: ModuleType, path: Sequence[str]) -> None:
        """Add the value of a dotted name in a module, following submodules; nothing in a library."""
        value: Any = module
        for name in path:
            if not isinstance(value, ModuleType) or not self._own_module(value):
                return
            module, value = value, getattr(value, name, None)
            if not isinstance(value, ModuleType):
                self._live(f"{module.__name__}.{name}", value)
                if not isinstance(innermost(value), (FunctionType, type)) and not _is_constant(value):
                    self._binding(module, name)

    def _binding(self, module: ModuleType, name: str) -> None:
        """Add the statements of a module that bind a name to an object."""
        text = text_of(module.__file__ or "", vars(module), ())
        start = [at for at, part in enumerate(statements(text or "")) if name in part.binds]
        self._follow(text or "", start, vars(module))

    def _module(self, module: ModuleType) -> str:
        """A module that an object refers to: all of it, because nothing says which parts are used."""
        if self._own_module(module):
            text = text_of(module.__file__ or "", vars(module), ()) or ""
            self._follow(text, range(len(statements(text))), vars(module))
        return f"module {module.__name__}"

    def _global(self, name: str, names: Mapping[str, Any], attributes: Iterable[str]) -> None:
        """The value of a name without source text that would say which attributes of a module are used."""
        self._live(name, names.get(name), [[attribute] for attribute in attributes])

    def _own_module(self, module: ModuleType) -> bool:
        file = getattr(module, "__file__", None)
        return file is not None and self._is_own(module.__name__, file)

    def _class(self, kind: type, root: bool) -> str:
        name = f"class {kind.__qualname__}"
        file = file_of(kind)
        if file is None or not self._own(kind, file, root) or id(kind) in self._described:
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
            self._follow(text, start, names)
        changing = mutable(text or "")
        for key, member in vars(kind).items():
            constant = _is_constant(member) and not {kind.__name__, "cls"} & changing
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
        if file is not None and self._own(kind, file, root):
            self.describe(kind)
        elif top(kind.__module__) != "byzmesh":
            return self._reduced(value)
        state = dict(vars(value)) if hasattr(value, "__dict__") else {}
        slots = (name for base in kind.__mro__ for name in _slots(base) if hasattr(value, name))
        state |= {name: getattr(value, name) for name in slots if name not in ("__dict__", "__weakref__")}
        shown = [f"{key}={self.describe(item, root=is_users(item))}" for key, item in sorted(state.items())]
        shown += [self.describe(base(value)) for base in (*_CONTAINERS, *_PLAIN[1:]) if isinstance(value, base)]
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
                return f"{name} {getattr(value, '__module__', '')} {told}"
            parts = [*told[:3], *(list(items) for items in told[3:5] if items is not None)]
            return f"{name} {[self.describe(item, root=is_users(item)) for item in parts]}"
        except (Exception, RecursionError):
            self.unseen.add(name)
            return name


def _is_array(value: Any) -> bool:
    return type(value).__module__ == "numpy" and hasattr(value, "tobytes")


def _is_constant(value: Any) -> bool:
    """Whether it is a number, a text, an array or a tuple of such; not the path of a file, which differs by machine."""
    if isinstance(value, tuple):
        return all(_is_constant(item) for item in value)
    if isinstance(value, str) and Path(value).is_absolute():
        return False
    return isinstance(value, _PLAIN) or _is_array(value)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet filled
        return None


def _slots(kind: type) -> tuple[str, ...]:
    names = vars(kind).get("__slots__", ())
    return (names,) if isinstance(names, str) else tuple(names)


def _paths(name: str, attributes: Iterable[str]) -> list[list[str]]:
    """The dotted names that begin with a name, without it."""
    return [path.split(".")[1:] for path in sorted(attributes) if path.startswith(f"{name}.")]


def _bytes_of(code: CodeType) -> str:
    """Compiled code without its docstring and positions, and the code defined in it."""
    constants = list(code.co_consts)
    documented = code.co_flags & _HAS_DOCSTRING if sys.version_info >= (3, 13) else code.co_flags & _FUNCTION
    if documented and constants and isinstance(constants[0], str):
        constants[0] = None
    shown = [_constant(item) for item in constants]
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars} {shown}"


def _constant(value: Any) -> str:
    if isinstance(value, CodeType):
        return _bytes_of(value)
    if isinstance(value, frozenset):  # in another order in another process
        return f"set {sorted(map(_constant, value))}"
    return f"{type(value).__name__} {value!r}"


@functools.cache
def _session(process: int) -> str:
    """What stands for code that cannot be seen: another text in every process, forked ones included."""
    return uuid.uuid4().hex[:DIGITS]
