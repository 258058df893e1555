"""The identity of code that is not byzmesh's own: a short hash that changes when the code does something else.

What is seen, beginning with the function that makes a part (a registered factory, `package.module:function`, or what a
ready-made object holds):

    the statement at the top level of its file that it is in: the function with its decorators and defaults, or the
    class, or whatever it is defined within
    the statements of that file that bind the names it looks up, and so on: helpers, classes, constants
    helpers that come from other modules of the same package, or from a file in the same folder, likewise
    what it captured from an enclosing call: numbers, texts, lists, mappings, arrays, functions

Whitespace, comments, docstrings, annotations, the order of a file's statements and everything that the function does
not reach leave the identity as it is. So does a new version of Python, where there is source text. Where there is none
(functions typed into a plain REPL) the compiled code with its constants stands for it, which is another one in another
version of Python.

What is not seen: installed packages other than the part's own (the versions of the main ones are in a run's
provenance); names that are looked up as texts (`getattr(module, "f" + "g")`, `importlib`, `exec`); values that a module
computes from elsewhere (environment variables, files it reads when imported, unless an option of the config names the
file); compiled extensions. For such a change use `--recompute`.

What changes the identity and need not: another name for a local variable, an alias or a fact in the decorator, another
way to write the same number (0.1 and 1e-1 are the same, 2 and 2.0 are not), a change to a branch that is never taken.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from byzmesh.source import PACKAGE, global_names, statements, text_in, text_of

DIGITS = 16
_HAS_DOCSTRING = 0x4000000
_FUNCTION = 0x0002


def identity(part: Any) -> str | None:
    """16 hexadecimal digits for what a part's code is; None if all of it is byzmesh's own.

    >>> from byzmesh.rules.base import rules
    >>> identity(rules.entry("IOS").factory) is None
    True
    >>> import textwrap
    >>> len(identity(textwrap.dedent))
    16
    """
    walk = _Walk()
    described = walk.describe(part, root=True)
    if not walk.found:
        return None
    return hashlib.sha256("\n".join([described, *sorted(walk.found)]).encode()).hexdigest()[:DIGITS]


def _top(module: str) -> str:
    """The name of a module's package; a script has one name where it is started and another in a worker process."""
    return "__main__" if module == "__mp_main__" else module.partition(".")[0]


@functools.cache
def _installed(file: str) -> bool:
    library = sysconfig.get_path("stdlib")
    parts = Path(file).parts
    return "site-packages" in parts or "dist-packages" in parts or file.startswith(library)


class _Walk:
    """From a part to all that it rests on.

    found  one text for each statement, or each compiled function where there is no source
    """

    def __init__(self) -> None:
        self.found: set[str] = set()
        self._tops: set[str] = set()
        self._folders: set[str] = set()
        self._followed: set[tuple[str, int]] = set()
        self._described: dict[int, Any] = {}
        self._open: dict[int, Any] = {}

    def describe(self, value: Any, *, root: bool = False) -> str:
        """A text for a value, the same in every process; code that it leads to goes to `found`."""
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
            return f"{type(value).__name__} {value!r}"
        if id(value) in self._open:
            return "itself"
        self._open[id(value)] = value
        try:
            return self._describe(value, root)
        finally:
            del self._open[id(value)]

    def _describe(self, value: Any, root: bool) -> str:
        if isinstance(value, Mapping):
            pairs = (f"{self.describe(key)}: {self.describe(item)}" for key, item in value.items())
            return f"mapping {{{', '.join(pairs)}}}"
        if isinstance(value, (list, tuple)):
            return f"{type(value).__name__} [{', '.join(self.describe(item) for item in value)}]"
        if isinstance(value, (set, frozenset)):
            return f"set {{{', '.join(sorted(self.describe(item) for item in value))}}}"
        if type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
            digest = hashlib.sha256(value.tobytes()).hexdigest()
            return f"array {value.dtype} {value.shape} {digest}"
        if isinstance(value, functools.partial):
            return f"partial {self.describe(value.func, root=root)} {self.describe([value.args, value.keywords])}"
        if isinstance(value, MethodType):
            return f"method {self.describe(value.__func__, root=root)} of {self.describe(value.__self__)}"
        if isinstance(value, FunctionType):
            if id(value) in self._described:
                return f"function {value.__qualname__}"
            self._described[id(value)] = value  # kept, so that no other function gets its number
            return self._function(value, root)
        if isinstance(value, type):
            return self._class(value, root)
        inner = getattr(value, "py_func", None) or getattr(value, "__wrapped__", None)
        if isinstance(inner, FunctionType):  # compiled by Numba; cached or otherwise wrapped
            return f"{type(value).__qualname__} around {self.describe(inner, root=root)}"
        return self._instance(value, root)

    def _own(self, thing: Any, file: str, root: bool) -> bool:
        """Whether code is to be followed: the part's own, as against byzmesh and the libraries that it uses."""
        module = thing.__globals__.get("__name__") if isinstance(thing, FunctionType) else thing.__module__
        top, folder = _top(module or ""), str(Path(file).parent)
        if file.startswith(PACKAGE):
            return False
        if root:
            self._tops.add(top)
            if not _installed(file) and not file.startswith("<"):
                self._folders.add(folder)
        return top in self._tops or folder in self._folders

    def _function(self, function: FunctionType, root: bool) -> str:
        code = function.__code__
        name = f"function {code.co_qualname}"
        captured = [cell.cell_contents for cell in function.__closure__ or () if _filled(cell)]
        if not self._own(function, code.co_filename, root):
            # a wrapper: what it was made with may be the user's
            return f"{name} with {[self.describe(item, root=_users(item)) for item in captured]}"
        text = text_of(function)
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
        return f"{name} with {[self.describe(item, root=_users(item)) for item in captured]}"

    def _follow(self, text: str, start: Iterable[int], names: Mapping[str, Any]) -> None:
        """Add statements of a text and what they rest on."""
        parts = statements(text)
        waiting = list(start)
        while waiting:
            number = waiting.pop()
            if (text, number) in self._followed:
                continue
            self._followed.add((text, number))
            part = parts[number]
            self.found.add(part.tree)
            for name in sorted(part.loads):
                here = [at for at, other in enumerate(parts) if name in other.binds and not other.imports]
                if here:
                    waiting += [*here, *(at for at, other in enumerate(parts) if name in other.changes)]
                dotted = [path.split(".")[1:] for path in sorted(part.attributes) if path.startswith(f"{name}.")]
                self._live(name, names.get(name), dotted, bound=bool(here))

    def _live(self, name: str, value: Any, dotted: Iterable[list[str]], *, bound: bool) -> None:
        """Add what a global name stands for, if its own statement does not say so already (`bound`)."""
        if isinstance(value, ModuleType):
            for path in dotted:
                self._live(f"{name}.{'.'.join(path)}", self._attribute(value, path), [], bound=False)
        elif isinstance(_innermost(value), (FunctionType, type)):
            file = _file(value)
            if file is not None and self._own(_innermost(value), file, False):
                self.describe(value)
        elif not bound and value is not None:
            self.found.add(f"{name} = {self.describe(value)}")

    def _attribute(self, module: ModuleType, path: Iterable[str]) -> Any:
        """What a dotted name in a module stands for, as far as modules lead; None in a library."""
        value: Any = module
        for name in path:
            if not isinstance(value, ModuleType):
                break
            value = getattr(value, name, None) if self._own_module(value) else None
        return None if isinstance(value, ModuleType) else value

    def _global(self, name: str, names: Mapping[str, Any], attributes: Iterable[str]) -> None:
        """The same where there is no text to say which attributes of a module are used."""
        self._live(name, names.get(name), [[attribute] for attribute in attributes], bound=False)

    def _own_module(self, module: ModuleType) -> bool:
        file = getattr(module, "__file__", None)
        return _top(module.__name__) in self._tops or (file is not None and str(Path(file).parent) in self._folders)

    def _class(self, kind: type, root: bool) -> str:
        name = f"class {kind.__qualname__}"
        file = _file(kind)
        if file is None or not self._own(kind, file, root) or id(kind) in self._described:
            return name
        self._described[id(kind)] = kind
        for function in _methods(kind):
            self.describe(function)
        names = vars(sys.modules[kind.__module__])
        text = text_in(file, names)
        start = [at for at, part in enumerate(statements(text or "")) if kind.__qualname__.split(".")[0] in part.binds]
        if text and start:
            self._follow(text, start, names)
        else:
            for key, member in vars(kind).items():
                if not key.startswith("__"):
                    self.found.add(f"{name} {key} = {self.describe(member)}")
        for base in kind.__bases__:
            self.describe(base)
        return name

    def _instance(self, value: Any, root: bool) -> str:
        """An object: its class, and what it holds if that class is the user's or byzmesh's."""
        kind = type(value)
        name = f"{kind.__module__ if _top(kind.__module__) == 'byzmesh' else ''} {kind.__qualname__}"
        file = _file(kind)
        own = file is not None and self._own(kind, file, root)
        if own:
            self.describe(kind)
        if own or _top(kind.__module__) == "byzmesh":
            held = vars(value) if hasattr(value, "__dict__") else {}
            shown = (f"{key}={self.describe(item, root=_users(item))}" for key, item in sorted(held.items()))
            return f"{name}({', '.join(shown)})"
        return name


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # not yet
        return False


def _innermost(value: Any) -> Any:
    """The function inside of a wrapper."""
    for name in () if isinstance(value, type) else ("__func__", "fget", "func", "py_func", "__wrapped__"):
        inner = getattr(value, name, None)
        if isinstance(inner, FunctionType):
            return inner
    return value


def _methods(kind: type) -> list[FunctionType]:
    """The functions that a class defines, without those that are made for it (dataclasses)."""
    functions = [_innermost(member) for member in vars(kind).values()]
    return [item for item in functions if isinstance(item, FunctionType) and item.__code__.co_filename != "<string>"]


def _file(value: Any) -> str | None:
    """The file that a function or class is in, by its code or its module; None for what is compiled."""
    if isinstance(value, type):
        functions = [item for item in _methods(value) if item.__module__ == value.__module__]
    else:
        functions = [item for item in (_innermost(value),) if isinstance(item, FunctionType)]
    if functions:
        return functions[0].__code__.co_filename
    module = getattr(value, "__module__", None) or ""
    return "<input>" if module == "__main__" else getattr(sys.modules.get(module), "__file__", None)


def _users(value: Any) -> bool:
    """Whether code that a wrapper or an object holds is nobody's library."""
    function = _innermost(value)
    file = _file(function if isinstance(function, (FunctionType, type)) else type(value))
    return file is not None and not _installed(file)


def _bytes_of(code: CodeType) -> str:
    """Compiled code without its docstring and positions, and what is defined in it."""
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
