"""Buffers that a forward pass changes, such as the running statistics of BatchNorm, and whose they are.

    frozen   as the factory or the base made them: their layers work as in evaluation while training too
    shared   part of the model: sent and aggregated by the rule like parameters
    local    each worker's own: never sent, kept in its model and its checkpoints

Shared and local ones are the last columns of a model, after the trainable parameters. Local steps replace them by what
the forward pass made of them, whatever the optimizer (training/local_round.py); a counter is a number like the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from byzmesh.errors import ConfigError

POLICIES = ("local", "shared", "frozen")


@dataclass(frozen=True)
class Running:
    """The buffers of a module at the end of a model's vector.

    >>> import torch
    >>> module = torch.nn.BatchNorm1d(2)
    >>> running = running_of(module, ["running_mean", "running_var"])
    >>> running.put(module, torch.tensor([5.0, 6.0, 7.0, 8.0]))
    >>> module.running_var, running.count
    (tensor([7., 8.]), 4)
    """

    names: tuple[str, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()

    @property
    def count(self) -> int:
        """How many numbers they are."""
        return sum(prod(shape) for shape in self.shapes)

    def put(self, module: Any, values: Any) -> None:
        """Copy values (count,) into the module's buffers."""
        import torch

        start = 0
        with torch.no_grad():
            for name, shape in zip(self.names, self.shapes, strict=True):
                buffer = module.get_buffer(name)
                part = values[start : start + prod(shape)].view(shape)
                buffer.copy_(part if buffer.is_floating_point() else part.round())
                start += prod(shape)

    def get(self, module: Any, like: Any) -> Any:
        """(count,) the values of the module's buffers, a tensor like another one."""
        import torch

        return torch.cat([module.get_buffer(name).detach().reshape(-1).to(like) for name in self.names])


def running_of(module: Any, names: Sequence[str]) -> Running:
    """These buffers of a module."""
    return Running(tuple(names), tuple(tuple(module.get_buffer(name).shape) for name in names))


def freeze(module: Any, names: Sequence[str]) -> None:
    """Put the layers that own these buffers into evaluation mode, for good."""
    for owner in {name.rpartition(".")[0] for name in names}:
        layer = module.get_submodule(owner)
        layer.eval()
        layer.train = lambda mode=True, layer=layer: layer


def refused(module: Any, name: str) -> ConfigError:
    """What to say about a module that changes a buffer without a policy for it."""
    return ConfigError(
        f"module {type(module).__name__} changes its buffer {name!r} while training (running statistics): say whose "
        "they are by buffers: local, shared or frozen, or use GroupNorm"
    )
