"""From a function to all code that it depends on: statements of its file, helpers in other files, values of globals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any

from byzmesh.config.origin import file_of, innermost, is_installed, top, users_module
from byzmesh.config.statements import WHOLE, actions, mutable, statements
from byzmesh.config.values import is_data
from byzmesh.source import text_of


class CodeWalk(ABC):
    """Walks from a part to all code that it depends on; `describe` starts it and is called for every value on the way.

    found   one text for each value, and for each compiled function without source
    unseen  types of objects whose state cannot be inspected
    """

    def __init__(self) -> None:
        self.found: set[str] = set()
        self.unseen: set[str] = set()
        self._packages: set[str] = set()
        self._followed: dict[str, set[int]] = {}

    @abstractmethod
    def describe(self, value: Any, *, root: bool = False) -> str:
        """A text for a value, the same in every process; code that it leads to is added to `found`."""

    def texts(self) -> list[str]:
        """All that was found: values, definitions, and the other statements of each file in their order."""
        texts = set(self.found)
        for text, numbers in self._followed.items():
            parts = statements(text)
            texts |= {parts[number].tree for number in numbers if parts[number].defines}
            texts.add("\n".join(parts[number].tree for number in sorted(numbers) if not parts[number].defines))
        return sorted(texts - {""})

    def is_own(self, thing: Any, file: str, root: bool) -> bool:
        """Whether to follow code: it is the user's, not byzmesh's or that of a library."""
        module = thing.__globals__.get("__name__") if isinstance(thing, FunctionType) else thing.__module__
        return self._is_own_file(module or "", file, root)

    def _is_own_file(self, module: str, file: str, root: bool = False) -> bool:
        package = top(module)
        if package == "byzmesh" and is_installed(file):
            return False
        if root:
            self._packages.add(package)
        return package in self._packages or (package == "__main__" if file.startswith("<") else not is_installed(file))

    def follow(self, text: str, start: Iterable[int], names: Mapping[str, Any]) -> None:
        """Add statements of a source text and everything they depend on."""
        parts, acting, changing = statements(text), actions(text), mutable(text)
        followed = self._followed.setdefault(text, set())
        waiting = list(start)
        while waiting:
            number = waiting.pop()
            if number in followed:
                continue
            followed.add(number)
            part = parts[number]
            for name in sorted(part.loads):
                value = names.get(name)
                here = [at for at, other in enumerate(parts) if name in other.binds]
                waiting += here
                ours = here or (isinstance(value, ModuleType) and self._is_own_module(value))
                waiting += [at for at in acting.get(name, ()) if ours or name in parts[at].sets]
                sources = [item[1:] for other in parts for item in other.imports if item[0] == name]
                constant = name not in changing
                for module, there in sources:
                    if not self._imported(module, there, names, constant=constant):
                        self.found.add(f"{name} is {there} of {module}")
                known = here and not sources and not isinstance(innermost(value), (FunctionType, type, ModuleType))
                if not known or is_data(value):
                    dotted = [[]] if name in part.bare else _paths(name, part.attributes)
                    self._add_global(name, value, dotted, constant=constant)
            for name, module, there in part.imports:
                self._imported(module, there, names, _paths(name, part.attributes), constant=name not in changing)

    def _imported(
        self, name: str, there: str, names: Mapping[str, Any], dotted: Iterable[Sequence[str]] = (), *, constant: bool
    ) -> bool:
        """Add what an import brings from a module of the user's own; False if it is a library."""
        module = users_module(name, names.get("__package__"))
        if module is None:
            return False
        for path in [[]] if there == WHOLE else [[there]] if there not in ("", "*") else dotted:
            self._add_global(name, module, [path], constant=constant)
        return True

    def _add_global(self, name: str, value: Any, dotted: Iterable[Sequence[str]] = (), *, constant: bool) -> None:
        """Add the value of a global name, unless functions change it, so that only its binding statement counts.

        dotted  of a module, the members to add; an empty name: all of it
        """
        if isinstance(value, ModuleType):
            for path in dotted:
                self._member(value, path, constant) if path else self.describe(value)
        elif isinstance(innermost(value), (FunctionType, type)):
            file = file_of(value)
            if file is not None and self.is_own(innermost(value), file, False):
                self.describe(value)
        elif value is not None and constant:
            self.found.add(f"{name} = {self.describe(value)}")

    def _member(self, module: ModuleType, path: Sequence[str], constant: bool) -> None:
        """Add the value of a dotted name in a module, following submodules; nothing in a library."""
        value: Any = module
        for name in path:
            if not isinstance(value, ModuleType) or not self._is_own_module(value):
                return
            module, value = value, getattr(value, name, None)
            if not isinstance(value, ModuleType):
                text = text_of(module.__file__ or "", vars(module), ()) or ""
                constant = constant and name not in mutable(text)
                self._add_global(f"{module.__name__}.{name}", value, constant=constant)
                if not isinstance(innermost(value), (FunctionType, type)) and not (constant and is_data(value)):
                    binding = [at for at, part in enumerate(statements(text)) if name in part.binds]
                    self.follow(text, binding, vars(module))

    def module_text(self, module: ModuleType) -> str:
        """A module that an object refers to: all of it, because nothing says which parts are used."""
        if self._is_own_module(module):
            text = text_of(module.__file__ or "", vars(module), ()) or ""
            self.follow(text, range(len(statements(text))), vars(module))
        return f"module {module.__name__}"

    def add_looked_up(self, name: str, names: Mapping[str, Any], attributes: Iterable[str]) -> None:
        """The value of a name without source text that would say which attributes of a module are used."""
        self._add_global(name, names.get(name), [[attribute] for attribute in attributes], constant=True)

    def _is_own_module(self, module: ModuleType) -> bool:
        file = getattr(module, "__file__", None)
        return file is not None and self._is_own_file(module.__name__, file)


def _paths(name: str, attributes: Iterable[str]) -> list[list[str]]:
    """The dotted names that begin with a name, without it."""
    return [path.split(".")[1:] for path in sorted(attributes) if path.startswith(f"{name}.")]
