"""Named factories: how rules, attacks, topologies and problems are found by name.

A registry maps a canonical name and its aliases to a factory whose keyword parameters are the options a user may
write. A *spec* is what users write: a name, a mapping with `name` and options, or the object itself; `build` makes the
object from it and `canonical` writes it out in full.

Third parties register by decorator or, in an installed package, by an entry point in the registry's group that names a
module (importing it registers) or the factory itself. Rooms above a registry's own register in the same way.
"""

from __future__ import annotations

import functools
import inspect
import pkgutil
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import MappingProxyType
from typing import Any, Generic, TypeVar, cast

from byzmesh.checks import whole
from byzmesh.entries import Entry, Plain, fold
from byzmesh.errors import ConfigError, UnknownName, UnknownOption, brief, nearest
from byzmesh.renamed import renamed

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def _is_ours(function: Callable[..., Any]) -> bool:
    """Whether a function is built in."""
    return f"{inspect.unwrap(function).__module__}.".startswith("byzmesh.")


def _import_all(name: str) -> None:
    """Import a module and, for a package, all its modules, so that no list must name a new file."""
    module = import_module(name)
    for inner in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if not inner.ispkg:
            import_module(f"{name}.{inner.name}")


@functools.cache
def _entry_points(path: tuple[str, ...]) -> Any:
    """The entry points of all packages on the path: reading them takes 10 ms, and every registry asks."""
    from importlib import metadata  # slow to import

    return metadata.entry_points()


class Registry(Generic[T]):
    """Factories of one kind by name.

    >>> shapes = Registry("shape", "byzmesh.shapes")
    >>> @shapes.register("square", aliases=("box",))
    ... def square(side: int = 1) -> str:
    ...     "A square."
    ...     return "#" * side
    >>> shapes.build("box", side=3), shapes.build({"name": "square", "side": 2})
    ('###', '##')
    >>> shapes.canonical("box")
    {'name': 'square', 'side': 1}
    >>> shapes.build("sqare")
    Traceback (most recent call last):
    byzmesh.errors.UnknownName: unknown shape 'sqare': did you mean 'square'?
    >>> shapes.build("square", sides=2)
    Traceback (most recent call last):
    byzmesh.errors.UnknownOption: shape square has no option 'sides': did you mean 'side'?
    """

    def __init__(self, kind: str, group: str, modules: tuple[str, ...] = (), built: Any = ()) -> None:
        """kind is the word for one part in messages, group that of the entry points, built the type(s) of parts.

        modules are imported when a name is first looked up; for a package, all its modules.
        """
        self.kind = kind
        self.group = group
        self._built = built
        self._modules = modules
        self._entries: dict[str, Entry[T]] = {}
        self._names: dict[str, str] = {}
        self._loaded = False
        self._lock = threading.RLock()
        self.plain: Plain[T] | None = None

    def register(
        self,
        name: str,
        *,
        aliases: tuple[str, ...] = (),
        published: Mapping[str, Any] | None = None,
        revision: int | None = None,
    ) -> Callable[[F], F]:
        """Decorator: make the factory available under `name` and `aliases`.

        A user's part may replace one that a user registered before, but not a built-in one.

        revision  one more whenever what it makes gives other results than before, so that stored runs are not taken for
                  today's. byzmesh's own parts need it, from 2 on. Edits to a third party's source are noticed; with a
                  revision the source no longer counts, which is for code that cannot be inspected.
        """

        if revision is not None:
            whole("revision", revision, 1)

        def add(function: F) -> F:
            if not _is_ours(function):
                self.load()  # otherwise a clash with a built-in name would be noticed only later
            factory = self.plain.factory(function, name) if self.plain and self.plain.fits(function) else function
            entry = Entry(name=name, factory=factory, aliases=aliases, published=published or {}, revision=revision)
            for word in (name, *aliases):
                taken = self._names.get(fold(word))
                mine = taken == name and (_is_ours(function) or not _is_ours(self._entries[name].factory))
                if taken is not None and not mine:
                    raise ConfigError(f"{self.kind} name {word!r} is taken by {taken}; choose another name")
            for word in (name, *aliases):
                self._names[fold(word)] = name
            self._entries[name] = entry
            if not _is_ours(function):
                from byzmesh.source import remember  # slow to import, and built-in parts do not need it

                remember(function)
            return function

        return add

    def load(self) -> None:
        """Import the built-in modules and the installed third-party ones, once; other threads wait for that."""
        with self._lock:
            if self._loaded:
                return
            self._loaded = True
            for module in self._modules:
                _import_all(module)
            for point in _entry_points(tuple(sys.path)).select(group=self.group):
                found = point.load()
                if callable(found) and fold(point.name) not in self._names:
                    self.register(point.name)(found)

    @contextmanager
    def temporary(self) -> Iterator[None]:
        """What is registered inside the block is forgotten after it (for tests and examples)."""
        self.load()
        entries, names = dict(self._entries), dict(self._names)
        try:
            yield
        finally:
            self._entries, self._names = entries, names

    def names(self) -> list[str]:
        """Canonical names, sorted."""
        self.load()
        return sorted(self._entries, key=str.lower)

    def entry(self, name: str) -> Entry[T]:
        """The entry of a name or alias."""
        if not isinstance(name, str):
            raise self._no_name(name)
        self.load()
        canonical = self._names.get(fold(name))
        if canonical is None:
            words = [word for entry in self._entries.values() for word in (entry.name, *entry.aliases)]
            raise UnknownName(f"unknown {self.kind} {name!r}: {nearest(name, words)}")
        return self._entries[canonical]

    def _no_name(self, got: Any) -> ConfigError:
        function = callable(got)
        shown = f"{type(got).__name__} {getattr(got, '__name__', brief(got)) if function else brief(got)}"
        way_out = "; register it and give its name" if function else ""
        return ConfigError(f"{self.kind} must be a name or a mapping with 'name' and options, got {shown}{way_out}")

    def build(self, spec: Any, /, **options: Any) -> T:
        """The part that a spec describes: a name, a mapping with `name` and options, or the part itself.

        Options given with a name or a mapping are added to it; a ready-made part takes none.
        """
        if isinstance(spec, self._built):
            if options:
                given = ", ".join(sorted(options))
                name = getattr(spec, "name", "given")
                raise UnknownOption(
                    f"{self.kind} {name} is already built; give its options ({given}) when you create it"
                )
            return cast(T, spec)
        if callable(spec):
            return self._of_function(spec, options)
        entry, options = self.options_of(spec, options)
        return entry.factory(**options)

    def _of_function(self, function: Callable[..., Any], options: dict[str, Any]) -> T:
        self.load()
        if self.plain is None:
            raise ConfigError(f"{self.kind} cannot be a function, got {function!r}; register it and give its name")
        for entry in self._entries.values():
            if getattr(entry.factory, "__wrapped__", None) is function:
                return self.build(entry.name, **options)
        name = getattr(function, "__name__", type(function).__name__)
        if fold(name) in self._names:
            taken = self._names[fold(name)]
            raise ConfigError(f"{self.kind} {name}: that is a name of {self.kind} {taken}; rename the function")
        return self.plain.build(function, name, options)

    def is_registered(self, spec: Any) -> bool:
        """Whether a spec has a registered name; a user's own object need not have one."""
        return self.knows(getattr(spec, "name", "")) if isinstance(spec, self._built) else True

    def knows(self, name: str) -> bool:
        """Whether a name or alias is registered."""
        self.load()
        return fold(name) in self._names

    def entry_of(self, spec: Any) -> Entry[T]:
        """The entry that a spec names."""
        return self.entry(self._parts(spec)[0])

    def canonical(self, spec: Any, defaults: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
        """The spec as a mapping with the canonical name and every option written out.

        defaults  options that take precedence over the factory's defaults (a profile's)
        """
        if not self.is_registered(spec):
            return {"name": spec.name, **spec.options}
        entry, options = self.options_of(spec, {}, tuple(defaults))
        merged = {
            option: options.get(option, defaults.get(option, default)) for option, default in entry.options.items()
        }
        return {"name": entry.name, **{option: self._typed(entry, option, value) for option, value in merged.items()}}

    def options_of(
        self, spec: Any, more: Mapping[str, Any], provided: tuple[str, ...] = ()
    ) -> tuple[Entry[T], dict[str, Any]]:
        """The entry a spec names and the options it gives, checked: known, none missing but those `provided`."""
        name, options = self._parts(spec)
        entry = self.entry(name)
        known = entry.options
        options = {**options, **more}
        for option in options:
            if option not in known:
                if today := renamed(self.kind, entry.name).get(option):
                    raise UnknownOption(f"{self.kind} {entry.name} has no option {option!r}; it is called {today!r}")
                hint = nearest(str(option), known) if known else "it takes none"
                raise UnknownOption(f"{self.kind} {entry.name} has no option {option!r}: {hint}")
        for option, default in known.items():
            if default is inspect.Parameter.empty and option not in options and option not in provided:
                raise ConfigError(f"{self.kind} {entry.name} needs the option {option!r}; give it a value")
        return entry, {option: self._typed(entry, option, value) for option, value in options.items()}

    def _parts(self, spec: Any) -> tuple[Any, dict[str, Any]]:
        """(name, options) of a spec."""
        if isinstance(spec, Mapping):
            if "name" not in spec:
                keys = ", ".join(map(str, spec)) or "none"
                raise ConfigError(f"a {self.kind} given as a mapping needs the key 'name', got the keys {keys}")
            return spec["name"], {str(key): value for key, value in spec.items() if key != "name"}
        if not isinstance(spec, str) and hasattr(spec, "name") and hasattr(spec, "options"):
            return spec.name, dict(spec.options)
        return spec, {}

    def _typed(self, entry: Entry[T], option: str, value: Any) -> Any:
        """A number as a float if the default is one: 1, 1.0 and YAML's unquoted 1e-5 (a string) mean the same."""
        if not isinstance(entry.options[option], float):
            return value
        try:
            if isinstance(value, bool):
                raise ValueError
            return float(value)
        except (TypeError, ValueError):
            raise ConfigError(f"{self.kind} {entry.name}: {option} must be a number, got {brief(value)}") from None

    def entries(self) -> list[Entry[T]]:
        """All entries, by name."""
        return [self._entries[name] for name in self.names()]
