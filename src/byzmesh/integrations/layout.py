"""Named arrays as one vector and back: how the frameworks' models reach a rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.types import Array


@dataclass(frozen=True)
class Layout:
    """The floating-point arrays of a model by name, in its order, and the dtype of their common vector (D,).

    Arrays of whole numbers (a counter of BatchNorm) are not part of the vector: they stay the server's own.

    >>> model = {"weight": np.ones((1, 2), np.float32), "steps": np.array(3), "bias": np.zeros(1, np.float32)}
    >>> layout = Layout.of(model)
    >>> layout.vector(model)
    array([1., 1., 0.], dtype=float32)
    >>> layout.arrays(np.array([5.0, 6.0, 7.0]), model)["weight"]
    array([[5., 6.]], dtype=float32)
    >>> layout.vector({"weight": np.ones(2)}) is None  # a shape is wrong, and a name is missing
    True
    """

    shapes: Mapping[str, tuple[int, ...]]
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, model: Mapping[str, Any]) -> Layout:
        """The layout of a model."""
        floats = {name: np.asarray(array) for name, array in model.items() if np.asarray(array).dtype.kind == "f"}
        if not floats:
            raise ConfigError(f"the model must have arrays of floating-point numbers, got {sorted(model)} without any")
        kind = np.result_type(np.float32, *(array.dtype for array in floats.values()))
        return cls({name: array.shape for name, array in floats.items()}, np.dtype(kind))

    def vector(self, arrays: Any) -> Array | None:
        """(D,) the arrays end to end; None if one is missing, of another shape, or not of real numbers."""
        parts = []
        for name, shape in self.shapes.items():
            part = arrays.get(name) if isinstance(arrays, Mapping) else None
            if part is None or np.shape(part) != shape or np.asarray(part).dtype.kind not in "fiu":
                return None
            parts.append(np.asarray(part).ravel())
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and that counts as silence
            return np.concatenate([part.astype(self.dtype) for part in parts])

    def arrays(self, vector: Array, model: Mapping[str, Any]) -> dict[str, Array]:
        """The model with its floating-point arrays taken from a vector (D,), in the model's dtypes."""
        found, start = {}, 0
        for name, old in model.items():
            found[name] = old = np.asarray(old)
            if name in self.shapes:
                found[name] = vector[start : start + old.size].reshape(old.shape).astype(old.dtype)
                start += old.size
        return found
