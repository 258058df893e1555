"""Conversion between a caller's arrays and ours: NumPy or torch in, the same type, dtype and device out.

CPU tensors share memory with NumPy, so compiled kernels work on both without a copy. Arrays elsewhere (a GPU) stay
there; the rules then use array-API operations, and only the small Gram matrix is copied to the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.types import Array, Booleans

_WORK = {"float32": "float32", "float64": "float64", "float16": "float32", "bfloat16": "float32"}


class Bridge:
    """Converts arrays like `like` to those that rules work on, and results back."""

    def __init__(self, like: Any, name: str) -> None:
        self.torch: Any = None
        if type(like).__module__.split(".")[0] == "torch":
            import torch

            self.torch = torch
            self.dtype, self.device = like.dtype, like.device
        else:
            like = np.asarray(like)
            self.dtype, self.device = like.dtype, "cpu"
            if like.dtype.kind in "iub":
                self.dtype = np.dtype(np.float64)
        self.name = name
        kind = str(self.dtype).rsplit(".", 1)[-1]
        if kind not in _WORK:
            raise ConfigError(f"{name} must hold floating-point numbers, got {kind}; convert to float32 or float64")
        self.work = _WORK[kind]
        self.here = str(self.device) == "cpu"

    def _convert(self, array: Any) -> Any:
        if self.torch is None:
            with np.errstate(over="ignore"):  # infinity, which counts as silence
                return np.ascontiguousarray(array, dtype=self.work)
        tensor = (
            self.torch.as_tensor(array, device=self.device).detach().to(getattr(self.torch, self.work)).contiguous()
        )
        return tensor.numpy() if self.here else tensor

    def vector(self, array: Any) -> Any:
        """A (D,) vector in the working type."""
        vector = self._convert(array)
        if vector.ndim != 1:
            raise ConfigError(f"{self.name} must be a vector (D,), got shape {tuple(vector.shape)}; flatten it first")
        return vector

    def rows(self, array: Any) -> Any:
        """A (P, D) array in the working type."""
        return self._convert(array)

    def stack(self, vectors: Sequence[Any], dimension: int) -> tuple[Any, Booleans]:
        """(d, D) rows of a list of vectors, zero if one is None or of the wrong shape, and which were usable."""
        arrived = np.zeros(len(vectors), bool)
        rows = []
        for place, vector in enumerate(vectors):
            fits = vector is not None and tuple(np.shape(vector)) == (dimension,)
            arrived[place] = fits
            rows.append(self._convert(vector) if fits else None)
        if self.here:
            out = np.zeros((len(vectors), dimension), self.work)
        else:
            out = self.torch.zeros((len(vectors), dimension), dtype=getattr(self.torch, self.work), device=self.device)
        for place, row in enumerate(rows):
            if row is not None:
                out[place] = row
        return out, arrived

    def back(self, array: Any) -> Any:
        """A result in the caller's type, dtype and device."""
        if self.torch is None:
            return array.astype(self.dtype, copy=False)
        tensor = self.torch.from_numpy(np.ascontiguousarray(array)) if self.here else array
        return tensor.to(self.dtype)


def to_host(array: Any) -> Array:
    """Any array as NumPy."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "detach"):
        array = array.detach().cpu()
    return np.asarray(array)


def from_host(array: Array, like: Any) -> Any:
    """A NumPy array in the type, dtype and device of another array."""
    if isinstance(like, np.ndarray):
        with np.errstate(over="ignore"):  # infinity, as of tensors
            return array.astype(like.dtype, copy=False)
    from array_api_compat import array_namespace, device

    return array_namespace(like).asarray(array, dtype=like.dtype, device=device(like))
