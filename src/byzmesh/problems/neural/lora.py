"""Adapters train a few numbers in a frozen module: `adapter: {name: lora, rank: 4, alpha: 8, layers: "*.attend.*"}`.

    lora    y = W x + b + (alpha / rank) B (A x)    A (rank, in) random, B (out, rank) zero at first

(Hu et al. 2021.) Everything that the module had is frozen: only A and B are trained, sent and aggregated. `layers` are
patterns, as of file names, for the full names of `torch.nn.Linear` layers. `merged` gives the state_dict of the module
without adapters, with W + (alpha / rank) B A under the name of W.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from byzmesh.checks import positive, whole
from byzmesh.errors import ConfigError
from byzmesh.problems.neural.modules import import_torch
from byzmesh.registry import Registry

ENTRIES = ("lora_a", "lora_b")
"""The adapter's parameters in a layer."""


@dataclass(frozen=True)
class Lora:
    """An adapter as a config describes it.

    >>> import torch
    >>> module = Lora(rank=2, alpha=4.0).adapt(torch.nn.Sequential(torch.nn.Linear(5, 3)))
    >>> [name for name, value in module.named_parameters() if value.requires_grad]
    ['0.lora_a', '0.lora_b']
    >>> sorted(merged(module))
    ['0.bias', '0.weight']
    """

    rank: int
    alpha: float
    layers: Sequence[str] = ("*",)

    def adapt(self, module: Any) -> Any:
        """The module, frozen, with adapters in the chosen layers."""
        nn = import_torch().nn
        names = [name for name, layer in module.named_modules() if type(layer) is nn.Linear]
        chosen = [name for name in names if any(fnmatchcase(name, pattern) for pattern in self.layers)]
        if not chosen:
            raise ConfigError(
                f"adapter lora: no torch.nn.Linear of {type(module).__name__} is called {' or '.join(self.layers)}; "
                f"there are {', '.join(names) or 'none'}"
            )
        tied = [name for name, count in _owners(module, chosen).items() if count > 1]
        if tied:
            raise ConfigError(
                f"adapter lora: the weights of {tied[0]} are shared with another layer, which would not have the "
                "adapter; leave it out of layers"
            )
        module.requires_grad_(False)
        for name in chosen:
            _adapt(nn, module.get_submodule(name), self.rank, self.alpha / self.rank)
        return module


adapters: Registry[Lora] = Registry("adapter", "byzmesh.adapters", (), Lora)


@adapters.register("lora")
def lora(rank: int = 4, alpha: float = 8.0, layers: str | Sequence[str] = "*") -> Lora:
    """Low-rank adapters in the linear layers whose names fit one of the patterns."""
    whole("adapter lora: rank", rank, 1)
    positive("adapter lora: alpha", alpha)
    patterns = (layers,) if isinstance(layers, str) else layers
    if not isinstance(patterns, Sequence) or not all(isinstance(pattern, str) for pattern in patterns):
        raise ConfigError(f"adapter lora: layers must be a pattern or a list of them, got {layers!r}; e.g. *.attend.*")
    return Lora(rank, alpha, tuple(patterns))


def canonical_adapter(spec: Any) -> dict[str, Any] | None:
    """The adapter of a config with every option written out.

    >>> canonical_adapter("lora")
    {'name': 'lora', 'rank': 4, 'alpha': 8.0, 'layers': '*'}
    """
    if spec is None:
        return None
    adapters.build(spec)
    return adapters.canonical(spec)


def merged(module: Any) -> dict[str, Any]:
    """The state_dict of the module without adapters, with their product added to the weights."""
    state = dict(module.state_dict())
    for name, layer in module.named_modules():
        if hasattr(layer, ENTRIES[0]):
            path = f"{name}." if name else ""
            a, b = (state.pop(f"{path}{entry}") for entry in ENTRIES)
            state[f"{path}weight"] = state[f"{path}weight"] + layer.lora_scale * (b @ a)
    return state


def _adapt(nn: Any, layer: Any, rank: int, scale: float) -> None:
    """Add an adapter to a layer, which keeps its name and its other parameters."""
    weight = layer.weight
    layer.lora_a = nn.Parameter(weight.new_empty(rank, layer.in_features))
    layer.lora_b = nn.Parameter(weight.new_zeros(layer.out_features, rank))
    layer.lora_scale = scale
    nn.init.kaiming_uniform_(layer.lora_a, a=math.sqrt(5))
    layer.__class__ = _adapted()


@cache
def _adapted() -> Any:
    """The class of a linear layer with an adapter."""
    nn = import_torch().nn

    class AdaptedLinear(nn.Linear):  # type: ignore[name-defined,misc]
        def forward(self, x: Any) -> Any:
            low = nn.functional.linear(x, self.lora_a)
            return super().forward(x) + self.lora_scale * nn.functional.linear(low, self.lora_b)

    return AdaptedLinear


def _owners(module: Any, chosen: Sequence[str]) -> dict[str, int]:
    """Layer -> under how many names its weights occur in the module."""
    names = [id(value) for _, value in module.named_parameters(remove_duplicate=False)]
    return {name: names.count(id(module.get_submodule(name).weight)) for name in chosen}
