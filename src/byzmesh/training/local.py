"""The local update: from a model and its stochastic gradient to the half-step model that is sent.

    none          x_half = (1 - decay step) x - step g
    heavy-ball    v <- beta v + g,               x_half = (1 - decay step) x - step v
    exponential   v <- beta v + (1 - beta) g,    x_half = (1 - decay step) x - step v

Weight decay acts on the model, not on the buffer v. The state is the buffer (R, D), or None; it starts at zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.compiled import fast
from byzmesh.errors import ConfigError

Array = npt.NDArray[Any]
State = Array | None
MOMENTA = ("none", "heavy-ball", "exponential")


@dataclass(frozen=True)
class LocalUpdate:
    """Two functions: `init` makes the first state, `apply` one update of all rows."""

    init: Callable[[Array], State]
    """models (R, D) -> state."""
    apply: Callable[[Array, Array, float, State, Array], State]
    """(models, gradients, step, state, out (R, D)) -> next state; writes the half-step models into `out`, which may be
    `models` or `gradients`. The state given is used up."""
    options: Mapping[str, Any]


def local_update(decay: float = 0.0, momentum: str = "none", beta: float = 0.9) -> LocalUpdate:
    """SGD with weight decay and momentum `none`, `heavy-ball` or `exponential`.

    >>> update = local_update(decay=0.5)
    >>> out = np.empty((1, 2))
    >>> update.apply(np.array([[1.0, 2.0]]), np.array([[1.0, 0.0]]), 0.1, None, out), out.round(3).tolist()
    (None, [[0.85, 1.9]])
    """
    options = dict(locals())
    if isinstance(decay, bool) or not isinstance(decay, (int, float)) or not 0 <= decay < np.inf:
        raise ConfigError(f"decay must be a number of at least 0, got {decay!r}")
    if momentum not in MOMENTA:
        raise ConfigError(f"momentum must be one of {', '.join(MOMENTA)}, got {momentum!r}")
    if isinstance(beta, bool) or not isinstance(beta, (int, float)) or not 0 <= beta < 1:
        raise ConfigError(f"beta must be at least 0 and below 1, got {beta!r}")
    share = 1.0 - beta if momentum == "exponential" else 1.0

    def plain(models: Array, gradients: Array, step: float, state: State, out: Array) -> State:
        kind = models.dtype.type
        _plain(models, gradients, kind(1.0 - decay * step), kind(step), out)
        return None

    def moving(models: Array, gradients: Array, step: float, state: State, out: Array) -> State:
        kind = models.dtype.type
        _moving(models, gradients, state, kind(beta), kind(share), kind(1.0 - decay * step), kind(step), out)
        return state

    if momentum == "none":
        return LocalUpdate(lambda models: None, plain, options)
    return LocalUpdate(np.zeros_like, moving, options)


@fast
def _plain(models: Any, gradients: Any, keep: Any, step: Any, out: Any) -> None:
    for r in range(models.shape[0]):
        for d in range(models.shape[1]):
            out[r, d] = keep * models[r, d] - step * gradients[r, d]


@fast
def _moving(models: Any, gradients: Any, buffer: Any, beta: Any, share: Any, keep: Any, step: Any, out: Any) -> None:
    for r in range(models.shape[0]):
        for d in range(models.shape[1]):
            v = beta * buffer[r, d] + share * gradients[r, d]
            buffer[r, d] = v
            out[r, d] = keep * models[r, d] - step * v
