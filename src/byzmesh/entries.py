"""What a registry holds: factories with their names and options, and how a plain function becomes one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, wraps
from typing import Any, Generic, TypeVar

from byzmesh.errors import ConfigError

T = TypeVar("T")


def fold(name: str) -> str:
    """Names are compared without case, spaces, underscores or dashes.

    >>> fold("Sign_Flipping") == fold("sign-flipping") == "signflipping"
    True
    """
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")


IID = ("iid", "stratified", "drawn")
"""Partitions in which all workers' data look alike."""


@dataclass(frozen=True)
class ByPartition:
    """A published option that depends on how the data are split (one of `IID` or anything else)."""

    iid: Any
    other: Any


@cache  # not in the entry: the identity of code that names a registry has all that its entries hold
def _options(factory: Callable[..., Any]) -> dict[str, Any]:
    return {
        parameter.name: parameter.default
        for parameter in inspect.signature(factory).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }


@dataclass(frozen=True, kw_only=True)
class Entry(Generic[T]):
    """One registered factory, with the facts that a listing shows."""

    name: str
    factory: Callable[..., T]
    aliases: tuple[str, ...] = ()
    published: Mapping[str, Any] = field(default_factory=dict)
    """Options that reproduce the published numbers, if they differ from the text's definition."""
    revision: int | None = None
    """Goes up when the results change: runs of another revision are different runs (see `config.code`)."""

    @property
    def options(self) -> dict[str, Any]:
        """Option names with their defaults; `inspect.Parameter.empty` for required ones."""
        return dict(_options(self.factory))

    @property
    def summary(self) -> str:
        """First line of the factory's docstring."""
        return (inspect.getdoc(self.factory) or "").split("\n", 1)[0]

    def published_options(self, partition: str) -> dict[str, Any]:
        """The published variant's options for data split by `partition`."""
        return {
            option: (value.iid if partition in IID else value.other) if isinstance(value, ByPartition) else value
            for option, value in self.published.items()
        }


@dataclass(frozen=True)
class Plain(Generic[T]):
    """How a registry accepts a function that is itself the part, not a factory of it."""

    kind: str
    arguments: tuple[str, ...]
    """Its first arguments, by which it is recognised; further ones are options."""
    make: Callable[..., T]
    """(function, name, options) -> the part."""

    def fits(self, function: Callable[..., Any]) -> bool:
        """Whether a registered function is of this form."""
        return tuple(inspect.signature(function).parameters)[: len(self.arguments)] == self.arguments

    def build(self, function: Callable[..., Any], name: str, options: Mapping[str, Any]) -> T:
        """The part; `ConfigError` if the function does not take the arguments."""
        try:
            inspect.signature(function).bind(*self.arguments, **options)
        except TypeError as error:
            wanted = ", ".join(self.arguments)
            raise ConfigError(f"{self.kind} {name}: such a function must take ({wanted}): {error}") from None
        return self.make(function, name, options)

    def factory(self, function: Callable[..., Any], name: str) -> Callable[..., T]:
        """The factory that the registry stores for the function."""
        signature = inspect.signature(function)
        further = list(signature.parameters.values())[len(self.arguments) :]

        @wraps(function)
        def make(**options: Any) -> T:
            return self.build(function, name, options)

        options = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in further]
        setattr(make, "__signature__", signature.replace(parameters=options))  # noqa: B010 (no attribute of functions)
        return make


def as_call(function: str, name: str, options: Mapping[str, Any]) -> str:
    """A part as the call that makes it, for its repr.

    >>> as_call("rule", "CC", {"tau": 0.1})
    "rule('CC', tau=0.1)"
    """
    return f"{function}({', '.join([repr(name), *(f'{option}={value!r}' for option, value in options.items())])})"
