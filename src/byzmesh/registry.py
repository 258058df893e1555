"""Named factories: how rules, attacks, topologies and problems are found by name.

A registry maps a canonical name and its aliases to a factory whose keyword parameters are the options a user may
write. Third parties register by decorator or, in an installed package, by an entry point in the registry's group that
names a module (importing it registers) or the factory itself.
"""

from __future__ import annotations

import inspect
import pkgutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module, metadata
from typing import Any, Generic, TypeVar

from byzmesh.errors import ConfigError, UnknownName, UnknownOption, nearest

T = TypeVar("T")


def fold(name: str) -> str:
    """Names are compared without case, spaces, underscores or dashes.

    >>> fold("Sign_Flipping") == fold("sign-flipping") == "signflipping"
    True
    """
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")


@dataclass(frozen=True)
class ByPartition:
    """A published option that depends on how the data are split (`iid` or anything else)."""

    iid: Any
    other: Any


@dataclass(frozen=True)
class Entry(Generic[T]):
    """One registered factory with what a listing shows of it."""

    name: str
    factory: Callable[..., T]
    aliases: tuple[str, ...] = ()
    published: Mapping[str, Any] = field(default_factory=dict)
    """Options that reproduce the published numbers where they differ from the text's definition."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Further columns of a listing, e.g. a rule's feasibility condition."""

    @property
    def options(self) -> dict[str, Any]:
        """Option names with their defaults; `inspect.Parameter.empty` where one must be given."""
        return {
            parameter.name: parameter.default
            for parameter in inspect.signature(self.factory).parameters.values()
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        }

    @property
    def summary(self) -> str:
        """First line of the factory's docstring."""
        return (inspect.getdoc(self.factory) or "").split("\n", 1)[0]

    def published_options(self, partition: str) -> dict[str, Any]:
        """The published variant's options for data split by `partition`."""
        return {
            option: (value.iid if partition == "iid" else value.other) if isinstance(value, ByPartition) else value
            for option, value in self.published.items()
        }


def _import_all(name: str) -> None:
    """Import a module; of a package also its modules, so that a new file there needs no list that names it."""
    module = import_module(name)
    for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if not found.ispkg:
            import_module(f"{name}.{found.name}")


class Registry(Generic[T]):
    """Factories of one kind by name.

    >>> shapes = Registry("shape", "byzmesh.shapes")
    >>> @shapes.register("square", aliases=("box",))
    ... def square(side: int = 1) -> str:
    ...     "A square."
    ...     return "#" * side
    >>> shapes.make("box", side=3)
    '###'
    >>> shapes.make("sqare")
    Traceback (most recent call last):
    byzmesh.errors.UnknownName: unknown shape 'sqare': did you mean 'square'?
    >>> shapes.make("square", sides=2)
    Traceback (most recent call last):
    byzmesh.errors.UnknownOption: shape square has no option 'sides': did you mean 'side'?
    """

    def __init__(self, kind: str, group: str, modules: tuple[str, ...] = ()) -> None:
        self.kind = kind
        self.group = group
        self._modules = modules
        self._entries: dict[str, Entry[T]] = {}
        self._names: dict[str, str] = {}
        self._loaded = False
        self._lock = threading.RLock()

    def register(
        self,
        name: str,
        *,
        aliases: tuple[str, ...] = (),
        published: Mapping[str, Any] | None = None,
        facts: Mapping[str, str] | None = None,
    ) -> Callable[[Callable[..., T]], Callable[..., T]]:
        """Decorator: make the factory available under `name` and `aliases`."""

        def add(factory: Callable[..., T]) -> Callable[..., T]:
            entry = Entry(name, factory, aliases, published or {}, facts or {})
            for word in (name, *aliases):
                taken = self._names.get(fold(word))
                if taken is not None and taken != name:
                    raise ConfigError(f"{self.kind} name {word!r} is taken by {taken}; choose another name")
            for word in (name, *aliases):
                self._names[fold(word)] = name
            self._entries[name] = entry
            return factory

        return add

    def load(self) -> None:
        """Import the built-in modules and the installed third-party ones, once; other threads wait for that."""
        with self._lock:
            if self._loaded:
                return
            self._loaded = True
            for module in self._modules:
                _import_all(module)
            for point in metadata.entry_points(group=self.group):
                found = point.load()
                if callable(found) and fold(point.name) not in self._names:
                    self.register(point.name)(found)

    def names(self) -> list[str]:
        """Canonical names, sorted."""
        self.load()
        return sorted(self._entries, key=str.lower)

    def entry(self, name: str) -> Entry[T]:
        """The entry of a name or alias."""
        if not isinstance(name, str):
            raise ConfigError(f"{self.kind} must be a name, got {type(name).__name__} {name!r}")
        self.load()
        canonical = self._names.get(fold(name))
        if canonical is None:
            words = [word for entry in self._entries.values() for word in (entry.name, *entry.aliases)]
            raise UnknownName(f"unknown {self.kind} {name!r}: {nearest(name, words)}")
        return self._entries[canonical]

    def check_options(self, name: str, options: Mapping[str, Any]) -> Entry[T]:
        """The entry, after checking that it takes these options and lacks none."""
        entry = self.entry(name)
        known = entry.options
        for option in options:
            if option not in known:
                if not known:
                    raise UnknownOption(f"{self.kind} {entry.name} has no option {option!r}: it takes none")
                raise UnknownOption(f"{self.kind} {entry.name} has no option {option!r}: {nearest(option, known)}")
        for option, default in known.items():
            if default is inspect.Parameter.empty and option not in options:
                raise ConfigError(f"{self.kind} {entry.name} needs the option {option!r}; give it a value")
        return entry

    def make(self, name: str, **options: Any) -> T:
        """Build the thing of that name with these options."""
        return self.check_options(name, options).factory(**options)

    def entries(self) -> list[Entry[T]]:
        """All entries, by name."""
        return [self._entries[name] for name in self.names()]
