"""PyTorch's optimizers as local updates: `local: {optimizer: {name: AdamW, betas: [0.9, 0.95], weight_decay: 0.1}}`.

Each worker has its own optimizer state, which is never sent; checkpoints keep it. The step-size schedule sets the
learning rate of every update; groups of parameters keep the ratio of their rates. The default step is torch's own.

    name      a class of torch.optim, in any case: AdamW, SGD, Adafactor, ...
    factory   package.module:function or file.py:function, or in Python a function; it gets one worker's parameters
              and returns an optimizer

A class treats every parameter apart from the others, so one optimizer serves all workers; a factory may do anything,
so each worker gets one. Most classes treat every number apart from the others: they get a worker's vector as one
parameter, in a few large operations. The other classes and factories see the module's shapes, because they may look at
matrices.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError, UnknownName, UnknownOption, nearest
from byzmesh.problems.neural.modules import find, import_torch, label
from byzmesh.types import Array, Integers

_ARRAYS = "optimizer/"
_GIVEN = ("params", "lr", "foreach", "maximize", "capturable", "differentiable", "fused", "kwargs")
"""Arguments of torch's optimizers that are not a user's to choose here."""
_BY_NUMBER = ("ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD")
"""Classes for which the shape of a parameter makes no difference."""

_REFUSED = {
    "lbfgs": "calls the loss itself, which local updates do not offer",
    "sparseadam": "needs sparse gradients, and those here are dense",
}


@cache
def _classes() -> dict[str, Any]:
    """Optimizers of torch by their name in lower case."""
    torch = import_torch("local optimizer")
    base = torch.optim.Optimizer
    known = {name.lower(): made for name, made in vars(torch.optim).items() if inspect.isclass(made)}
    return {name: made for name, made in known.items() if issubclass(made, base) and made is not base}


def canonical_optimizer(spec: Any) -> dict[str, Any]:
    """The optimizer of a config with its name in full and every option written out.

    >>> canonical_optimizer({"name": "sgd", "momentum": 0.9})
    {'name': 'SGD', 'momentum': 0.9, 'dampening': 0, 'weight_decay': 0, 'nesterov': False}
    >>> canonical_optimizer("adamv")
    Traceback (most recent call last):
    byzmesh.errors.UnknownName: unknown optimizer 'adamv': did you mean 'adam'?
    """
    given = dict(spec) if isinstance(spec, Mapping) else {"name": spec}
    name = given.pop("name", None)
    if callable(name):
        return {"name": label(name), **given}
    if not isinstance(name, str):
        raise ConfigError(
            "local optimizer must be a name of torch.optim, a function or a mapping with a name, "
            f"got {type(name).__name__}; e.g. AdamW"
        )
    if ":" in name:
        find(name)
        return {"name": name, **given}
    made = _class(name)
    known = {
        option: parameter.default
        for option, parameter in inspect.signature(made).parameters.items()
        if option not in _GIVEN
    }
    for option in given:
        if option not in known:
            raise UnknownOption(f"optimizer {made.__name__} has no option {option!r}: {nearest(str(option), known)}")
    merged = {**known, **given}
    return {"name": made.__name__, **{o: list(v) if isinstance(v, tuple) else v for o, v in merged.items()}}


def own_rate(spec: Any) -> float:
    """The learning rate that PyTorch itself would take.

    >>> own_rate("adamw")
    0.001
    """
    name = canonical_optimizer(spec)["name"]
    if ":" in name:
        raise ConfigError(f"step is needed beside the optimizer {name}: the learning rate, e.g. step: 0.001")
    return float(inspect.signature(_class(name)).parameters["lr"].default)


def _class(name: str) -> Any:
    known = _classes()
    if name.lower() not in known:
        raise UnknownName(f"unknown optimizer {name!r}: {nearest(name, known)}")
    made = known[name.lower()]
    if name.lower() in _REFUSED:
        raise ConfigError(f"optimizer {made.__name__} {_REFUSED[name.lower()]}; use AdamW or SGD")
    return made


class Optimizers:
    """The optimizers of R workers over models (R, D).

    layout  of the module's parameters, with `views`; None: a worker's whole vector is one parameter

    >>> models, out = np.ones((2, 3)), np.empty((2, 3))
    >>> made = Optimizers({"name": "SGD", "momentum": 0.5}, None, models)
    >>> made.step(models, np.ones((2, 3)), 0.1, out)
    >>> out[0].tolist(), sorted(made.arrays())
    ([0.9, 0.9, 0.9], ['optimizer/0/0/momentum_buffer', 'optimizer/0/1/momentum_buffer'])
    """

    def __init__(self, spec: Any, layout: Any, models: Array) -> None:
        torch = import_torch("local optimizer")
        name = spec["name"] if isinstance(spec, Mapping) else spec
        by_number = isinstance(name, str) and ":" not in name and _class(name).__name__ in _BY_NUMBER
        self._layout = None if by_number else layout
        self._rows = [
            [torch.nn.Parameter(part.clone()) for part in self._parts(row)] for row in _tensor(torch, models).unbind(0)
        ]
        self.all = _made(spec, self._rows)
        self._ratios = [[_ratio(optimizer, group) for group in optimizer.param_groups] for optimizer in self.all]
        self._torch = torch

    def _parts(self, row: Any) -> list[Any]:
        return [row] if self._layout is None else list(self._layout.views(row).values())

    def step(self, models: Array, gradients: Array, step: float, out: Array) -> None:
        """Write the updated models to `out`, which may be `models` or `gradients`."""
        torch = self._torch
        there, slope, result = (_tensor(torch, array) for array in (models, gradients, out))
        if slope.data_ptr() == result.data_ptr():
            slope = slope.clone()
        if result.data_ptr() != there.data_ptr():
            result.copy_(there)
        for parameters, row, gradient in zip(self._rows, result.unbind(0), slope.unbind(0), strict=True):
            for parameter, value, grad in zip(parameters, self._parts(row), self._parts(gradient), strict=True):
                parameter.data, parameter.grad = value, grad
        for optimizer, ratios in zip(self.all, self._ratios, strict=True):
            for group, ratio in zip(optimizer.param_groups, ratios, strict=True):
                group["lr"] = step * ratio
            optimizer.step()

    def undo(self, rows: Integers) -> Callable[[], None]:
        """A function that gives these rows back the state they have now."""
        owned = [(self.all[row if len(self.all) > 1 else 0], self._rows[row]) for row in rows]
        before = [
            (optimizer, parameter, copy.deepcopy(optimizer.state.get(parameter)))
            for optimizer, parameters in owned
            for parameter in parameters
        ]

        def restore() -> None:
            for optimizer, parameter, state in before:
                if state is None:
                    optimizer.state.pop(parameter, None)
                else:
                    optimizer.state[parameter] = state

        return restore

    def arrays(self) -> dict[str, Array]:
        """The state by name: optimizer, parameter, entry."""
        return {
            f"{_ARRAYS}{number}/{parameter}/{entry}": _host(value)
            for number, optimizer in enumerate(self.all)
            for parameter, entries in optimizer.state_dict()["state"].items()
            for entry, value in entries.items()
            if value is not None
        }

    def resume(self, arrays: Mapping[str, Array]) -> None:
        """Continue from what `arrays` returned; other names are ignored."""
        states: list[dict[int, dict[str, Any]]] = [{} for _ in self.all]
        for name, value in arrays.items():
            if name.startswith(_ARRAYS):
                number, parameter, entry = name.removeprefix(_ARRAYS).split("/", 2)
                states[int(number)].setdefault(int(parameter), {})[entry] = self._torch.from_numpy(np.array(value))
        for optimizer, state in zip(self.all, states, strict=True):
            optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def _made(spec: Any, rows: list[list[Any]]) -> list[Any]:
    given = dict(spec) if isinstance(spec, Mapping) else {"name": spec}
    name = given.pop("name")
    if isinstance(name, str) and ":" not in name:
        options = {option: tuple(v) if isinstance(v, list) else v for option, v in given.items()}
        made = _class(name)
        try:
            return [made([parameter for row in rows for parameter in row], lr=1.0, **options)]
        except (TypeError, ValueError) as error:
            raise ConfigError(f"local optimizer {made.__name__}: {error}") from error
    factory: Callable[..., Any] = name if callable(name) else find(name)
    base = import_torch().optim.Optimizer
    optimizers = [factory(row, **given) for row in rows]
    if not isinstance(optimizers[0], base):
        raise ConfigError(f"local optimizer must return a torch optimizer, got {type(optimizers[0]).__name__}")
    return optimizers


def _ratio(optimizer: Any, group: Mapping[str, Any]) -> float:
    """A group's learning rate, as a multiple of the optimizer's."""
    rate = optimizer.defaults.get("lr")
    return float(group["lr"]) / float(rate) if rate and "lr" in group else 1.0


def _tensor(torch: Any, array: Any) -> Any:
    return torch.from_numpy(array) if isinstance(array, np.ndarray) else array


def _host(value: Any) -> Array:
    array: Array = np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)
    return array
