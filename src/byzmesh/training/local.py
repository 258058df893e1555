"""The local update: from a model and its stochastic gradient to the half-step model that is sent.

    none          x_half = (1 - decay step) x - step g
    heavy-ball    v <- beta v + g,               x_half = (1 - decay step) x - step v
    exponential   v <- beta v + (1 - beta) g,    x_half = (1 - decay step) x - step v

Weight decay acts on the model, not on the buffer v. The state is the buffer (R, D), or None; it starts at zero.
With `clip` a gradient longer than that is shortened to it first; with `steps` a round has several such updates, each
with a batch of its own, before anything is sent. Tensors on another device than the CPU are updated there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.checks import at_least, choice, fraction, positive, whole
from byzmesh.compiled import fast
from byzmesh.types import Array

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
    """`steps` and `clip` only if they are not the default: a run without them is known by what it was before."""
    steps: int = 1
    """Updates per round."""


def local_update(
    decay: float = 0.0, momentum: str = "none", beta: float = 0.9, steps: int = 1, clip: float | None = None
) -> LocalUpdate:
    """SGD with weight decay, momentum `none`, `heavy-ball` or `exponential`, clipping, several steps per round.

    >>> update = local_update(decay=0.5)
    >>> out = np.empty((1, 2))
    >>> update.apply(np.array([[1.0, 2.0]]), np.array([[1.0, 0.0]]), 0.1, None, out), out.round(3).tolist()
    (None, [[0.85, 1.9]])
    """
    options: dict[str, Any] = {"decay": decay, "momentum": momentum, "beta": beta}
    at_least("local decay", decay, 0)
    choice("local momentum", momentum, MOMENTA)
    fraction("local beta", beta, one=False)
    whole("local steps", steps, 1)
    if clip is not None:
        positive("local clip", clip)
    options |= {"steps": steps} if steps > 1 else {}
    options |= {"clip": float(clip)} if clip is not None else {}
    share = 1.0 - beta if momentum == "exponential" else 1.0

    def plain(models: Any, gradients: Any, step: float, state: State, out: Any) -> State:
        keep = 1.0 - decay * step
        gradients = gradients if clip is None else clipped(gradients, clip)
        if isinstance(models, np.ndarray):
            kind = models.dtype.type
            _plain(models, gradients, kind(keep), kind(step), out)
        else:
            out[:] = keep * models - step * gradients
        return None

    def moving(models: Any, gradients: Any, step: float, state: Any, out: Any) -> Any:
        keep = 1.0 - decay * step
        gradients = gradients if clip is None else clipped(gradients, clip)
        if isinstance(models, np.ndarray):
            kind = models.dtype.type
            _moving(models, gradients, state, kind(beta), kind(share), kind(keep), kind(step), out)
        else:
            state[:] = beta * state + share * gradients
            out[:] = keep * models - step * state
        return state

    if momentum == "none":
        return LocalUpdate(lambda models: None, plain, options, steps)
    return LocalUpdate(_zeros, moving, options, steps)


def clipped(gradients: Any, clip: float) -> Any:
    """(R, D) each row shortened to length `clip` if it is longer.

    >>> clipped(np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0)
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """
    if isinstance(gradients, np.ndarray):
        length = np.sqrt(np.einsum("rd,rd->r", gradients, gradients, dtype=np.float64))
        factor = np.minimum(1.0, clip / np.maximum(length, 1e-300)).astype(gradients.dtype)
    else:
        factor = (clip / gradients.double().norm(dim=1).clamp(min=1e-300)).clamp(max=1.0).to(gradients.dtype)
    return gradients * factor[:, None]


def _zeros(models: Any) -> Any:
    return np.zeros_like(models) if isinstance(models, np.ndarray) else models.new_zeros(models.shape)


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
