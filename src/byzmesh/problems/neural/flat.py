"""A module's trainable parameters as one vector.

    vector (D,)   the parameters that require a gradient, in the order of `module.named_parameters()`, each row-major

Shared weights occur once. Frozen parameters (`requires_grad=False`) and constant buffers are not part of the vector:
they stay as the factory made them, the same for all workers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError


@dataclass(frozen=True)
class Layout:
    """The parameters one after the other in the vector."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dimension: int

    def views(self, vectors: Any) -> dict[str, Any]:
        """Name -> view of a tensor (D,) in the parameter's shape, or of (N, D) in (N, *shape)."""
        lead = tuple(vectors.shape[:-1])
        parts = vectors[..., : self.dimension].split(self.sizes, dim=-1)  # one call: this is done for every batch
        return {
            name: part.view((*lead, *shape)) for name, shape, part in zip(self.names, self.shapes, parts, strict=True)
        }

    @cached_property
    def sizes(self) -> list[int]:
        """How many numbers each parameter has."""
        return [prod(shape) for shape in self.shapes]


def layout_of(module: Any) -> Layout:
    """The layout of a module's trainable parameters.

    >>> import torch
    >>> layout_of(torch.nn.Linear(3, 2))
    Layout(names=('weight', 'bias'), shapes=((2, 3), (2,)), dimension=8)
    """
    named = [(name, value) for name, value in module.named_parameters() if value.requires_grad]
    for name, value in named:
        if not hasattr(value, "data_ptr") or type(value).__name__.startswith("Uninitialized"):
            raise ConfigError(
                f"parameter {name!r} of {type(module).__name__} has no shape yet (a lazy layer); give it one"
            )
    if not named:
        raise ConfigError(f"module {type(module).__name__} has no trainable parameters; give one that has some")
    shapes = tuple(tuple(value.shape) for _, value in named)
    return Layout(tuple(name for name, _ in named), shapes, sum(prod(shape) for shape in shapes))


class Spanning:
    """Tensors one after the other as one vector (D,) of which blocks can be read and written: nothing is copied.

    >>> import torch
    >>> parts = [torch.zeros(2), torch.ones(1, 3)]
    >>> vector = Spanning(parts)
    >>> vector[1:4] = [5.0, 6.0, 7.0]
    >>> len(vector), vector[0:5], parts[1]
    (5, array([0., 5., 6., 7., 1.], dtype=float32), tensor([[6., 7., 1.]]))
    """

    def __init__(self, tensors: Sequence[Any]) -> None:
        self._flat = [tensor.detach().view(-1) for tensor in tensors]
        self._starts = [0, *np.cumsum([len(part) for part in self._flat]).tolist()]

    def __len__(self) -> int:
        return int(self._starts[-1])

    def _pieces(self, block: slice) -> Iterator[tuple[int, Any]]:
        """Where in the block, and what: views of the tensors that it touches."""
        first = bisect_right(self._starts, block.start) - 1
        for part, start in zip(self._flat[first:], self._starts[first:], strict=False):
            if start >= block.stop:
                return
            low, high = max(block.start, start), min(block.stop, start + len(part))
            if high > low:
                yield low - block.start, part[low - start : high - start]

    def __getitem__(self, block: slice) -> Any:
        pieces = [piece for _, piece in self._pieces(block)]
        found = [(piece.float() if piece.element_size() < 4 else piece).cpu().numpy() for piece in pieces]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def __setitem__(self, block: slice, values: Any) -> None:
        for at, piece in self._pieces(block):
            piece.copy_(piece.new_tensor(values[at : at + len(piece)]))


def flatten(module: Any) -> Any:
    """The trainable parameters as one detached tensor (D,): a copy."""
    import torch

    layout_of(module)
    return torch.cat([value.detach().reshape(-1) for value in module.parameters() if value.requires_grad])


def load(module: Any, vector: Any) -> None:
    """Write a vector (D,), tensor or array, into the trainable parameters."""
    import torch

    layout = layout_of(module)
    vector = torch.as_tensor(vector)
    if tuple(vector.shape) != (layout.dimension,):
        raise ConfigError(
            f"vector must have the {layout.dimension} trainable parameters of {type(module).__name__}, "
            f"got shape {tuple(vector.shape)}; create it with flatten"
        )
    held = dict(module.named_parameters())
    with torch.no_grad():
        for name, view in layout.views(vector).items():
            held[name].copy_(view)
