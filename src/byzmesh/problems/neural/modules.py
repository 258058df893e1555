"""Modules by name: built-in architectures, and the user's own factories as `package.module:function`.

A factory returns a fresh `torch.nn.Module`. If it has parameters `shape` (of one sample, e.g. (1, 28, 28)) and
`classes`, it gets those of the data. The built-ins have no BatchNorm: its running statistics are state that is neither
trained nor sent, and resnet8 uses group normalisation instead.

    linear    softmax regression
    mlp       fully connected layers with ReLU, `hidden` units each
    cnn       two 3 x 3 convolutions with ReLU and 2 x 2 pooling, then one layer, or two with `hidden` units between
    resnet8   three stages of one residual block (He et al. 2016), `width`, 2 width and 4 width channels
    gpt       a causal transformer for text (gpt.py)
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from byzmesh.checks import is_whole, whole
from byzmesh.errors import ConfigError, MissingExtra, UnknownOption, nearest
from byzmesh.registry import Registry

Factory = Callable[[], Any]
FROM_DATA = ("shape", "classes")
"""Options that a factory receives from the data."""

modules: Registry[Any] = Registry("module", "byzmesh.modules", ("byzmesh.problems.neural.gpt",))


def import_torch(what: str = "problem 'torch'") -> Any:
    """PyTorch, or an error that names the extra."""
    try:
        import torch
    except ImportError:
        raise MissingExtra("torch", what) from None
    return torch


def canonical_module(spec: Any) -> dict[str, Any]:
    """The module of a config with its full name and every option written out, except those that come from the data.

    >>> canonical_module("cnn")
    {'name': 'cnn', 'channels': [16, 32], 'hidden': 0}
    """
    name, given = _parts(spec)
    if callable(name):
        if isinstance(name, import_torch().nn.Module):
            raise ConfigError(
                f"module must be a function that makes a fresh module, got a {type(name).__name__}; "
                "write lambda: copy.deepcopy(module)"
            )
        return _described(name, given)
    if ":" in name:
        known = _options(find(name))
    else:
        entry = modules.entry(name)
        name, known = entry.name, entry.options
    options = {option: default for option, default in known.items() if option not in FROM_DATA}
    for option in given:
        if option not in options:
            raise UnknownOption(f"module {name} has no option {option!r}: {nearest(option, options)}")
    merged = {**options, **given}
    for option, value in merged.items():
        if value is inspect.Parameter.empty:
            raise ConfigError(f"module {name} needs the option {option!r}; give it a value")
    return {"name": name, **{k: list(v) if isinstance(v, tuple) else v for k, v in merged.items()}}


def _described(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A function as a config shows it: with all its options if it can be imported again, otherwise with those known."""
    while isinstance(function, functools.partial):
        given = {**function.keywords, **{f"argument {i}": v for i, v in enumerate(function.args)}, **given}
        function = function.func
    name = label(function)
    known: dict[str, Any] = {}
    try:
        if find(name) is function:
            known = {option: default for option, default in _options(function).items() if option not in FROM_DATA}
    except ConfigError:
        pass  # a lambda or an inner function: its config alone cannot repeat this run
    held = {option: value for option, value in {**known, **given}.items() if value is not inspect.Parameter.empty}
    return {"name": name, **{option: value if _plain(value) else repr(value) for option, value in held.items()}}


def _plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_plain(item) for item in value)
    return value is None or isinstance(value, (bool, int, float, str))


def make_factory(spec: Any, shape: tuple[int, ...], classes: int) -> Factory:
    """A function without arguments that makes a fresh module for samples of this shape."""
    name, given = _parts(spec)
    made = name if callable(name) else find(name) if ":" in name else modules.entry(name).factory
    facts = {"shape": shape, "classes": classes}
    known = _options(made)
    return functools.partial(made, **{**{key: facts[key] for key in FROM_DATA if key in known}, **given})


def find(path: str) -> Callable[..., Any]:
    """The function of `package.module:function` or of `file.py:function`; the current folder is searched too."""
    import_torch()
    where, _, function = path.rpartition(":")
    try:
        module = _import_file(Path(where)) if where.endswith(".py") else _import_beside(Path.cwd(), where)
        found = functools.reduce(getattr, function.split("."), module)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"module {path!r} cannot be imported ({error}); write package.module:function or file.py:function"
        ) from error
    if not callable(found):
        raise ConfigError(f"module {path!r} is a {type(found).__name__}; name a function that returns a module")
    return found


def _import_file(file: Path) -> ModuleType:
    """The module of a file; part of a package if its folder is one."""
    if not file.is_file():
        raise ImportError(f"there is no file {file}")
    top = next(folder for folder in file.parents if not (folder / "__init__.py").exists())
    module = _import_beside(top, ".".join(file.relative_to(top).with_suffix("").parts))
    if not file.samefile(module.__file__ or ""):
        raise ImportError(f"{module.__file__} has the same name and is already imported; rename one of them")
    return module


def _import_beside(folder: Path, name: str) -> ModuleType:
    """A module by its name; the folder is searched too."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return importlib.import_module(name)


def label(function: Callable[..., Any]) -> str:
    """The name of a function in a config."""
    return f"{getattr(function, '__module__', '?')}:{getattr(function, '__qualname__', type(function).__name__)}"


def _parts(spec: Any) -> tuple[Any, dict[str, Any]]:
    if callable(spec) or isinstance(spec, str):
        return spec, {}
    if isinstance(spec, Mapping) and "name" in spec:
        return spec["name"], {key: value for key, value in spec.items() if key != "name"}
    raise ConfigError(f"module must be a name, a function or a mapping with a name and options, got {spec!r}")


def _options(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {p.name: p.default for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


@modules.register("linear", aliases=("softmax",))
def linear(shape: tuple[int, ...] = (1, 28, 28), classes: int = 10) -> Any:
    """One layer."""
    return mlp(hidden=(), shape=shape, classes=classes)


@modules.register("mlp")
def mlp(hidden: Sequence[int] = (128,), shape: tuple[int, ...] = (1, 28, 28), classes: int = 10) -> Any:
    """Fully connected layers with ReLU."""
    nn = import_torch().nn
    _check_sizes("module mlp: hidden", hidden)
    layers: list[Any] = [nn.Flatten()]
    inputs = _size(shape)
    for units in hidden:
        layers += [nn.Linear(inputs, units), nn.ReLU()]
        inputs = units
    return nn.Sequential(*layers, nn.Linear(inputs, classes))


@modules.register("cnn")
def cnn(
    channels: Sequence[int] = (16, 32), hidden: int = 0, shape: tuple[int, ...] = (1, 28, 28), classes: int = 10
) -> Any:
    """Two 3 x 3 convolutions with ReLU and 2 x 2 pooling, then one or two layers."""
    nn = import_torch().nn
    _check_sizes("module cnn: channels", channels)
    _check_images("cnn", shape, 4)
    whole("module cnn: hidden", hidden, 0)
    if len(channels) != 2:
        raise ConfigError(f"module cnn: channels must be two numbers, got {list(channels)}")
    first, second = channels
    inputs = second * (shape[1] // 4) * (shape[2] // 4)
    head = [nn.Linear(inputs, classes)]
    if hidden:
        head = [nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, classes)]
    return nn.Sequential(
        nn.Conv2d(shape[0], first, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(first, second, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        *head,
    )


@modules.register("resnet8")
def resnet8(width: int = 16, shape: tuple[int, ...] = (3, 32, 32), classes: int = 10) -> Any:
    """Three residual blocks with group normalisation."""
    torch = import_torch()
    nn = torch.nn
    _check_sizes("module resnet8: width", [width])
    _check_images("resnet8", shape, 4)

    def norm(count: int) -> Any:
        return nn.GroupNorm(next(groups for groups in (8, 4, 2, 1) if count % groups == 0), count)

    class Block(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
                norm(outputs),
                nn.ReLU(),
                nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
                norm(outputs),
            )
            same = stride == 1 and inputs == outputs
            self.skip = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

        def forward(self, x: Any) -> Any:
            return torch.relu(self.body(x) + self.skip(x))

    return nn.Sequential(
        nn.Conv2d(shape[0], width, 3, padding=1, bias=False),
        norm(width),
        nn.ReLU(),
        Block(width, width, 1),
        Block(width, 2 * width, 2),
        Block(2 * width, 4 * width, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4 * width, classes),
    )


def _size(shape: Sequence[int]) -> int:
    return functools.reduce(lambda a, b: a * b, shape, 1)


def _check_sizes(name: str, sizes: Sequence[int]) -> None:
    if isinstance(sizes, (str, int)) or not all(is_whole(size) and size >= 1 for size in sizes):
        raise ConfigError(f"{name} must be whole numbers of at least 1, got {sizes!r}")


def _check_images(name: str, shape: Sequence[int], least: int) -> None:
    if len(shape) != 3 or min(shape[1:]) < least:
        raise ConfigError(
            f"module {name} needs images of at least {least} x {least}, the samples have shape {tuple(shape)}; use mlp"
        )
