"""The local update: from a model and its gradient estimate to the half step that is sent.

    none          x_half = (1 - decay step) x - step g
    heavy-ball    v <- beta v + g,               x_half = (1 - decay step) x - step v
    exponential   v <- beta v + (1 - beta) g,    x_half = (1 - decay step) x - step v

Weight decay acts on the model, not on the buffer v. The state is the buffer (R, D), or None; it starts at zero.
With `clip` a gradient longer than that is shortened to it first, with `clip_samples` that of each sample; with `steps`
a round has several such updates, each with its own batch, before anything is sent (training/local_round.py); `variance`
chooses how the gradient is estimated (training/variance.py); `optimizer` replaces the formulas by one of PyTorch's
(training/optimizers.py); `outer` is what happens after the exchange (training/outer.py). Tensors on other devices are
updated there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any

import numpy as np

from byzmesh.checks import at_least, choice, fraction, positive, require, whole
from byzmesh.compiled import fast
from byzmesh.errors import UnknownOption, nearest
from byzmesh.problems.descent import descend
from byzmesh.rules.interop import from_host, to_host
from byzmesh.training.optimizers import Optimizers, canonical_optimizer
from byzmesh.training.outer import Outer
from byzmesh.types import Array, Integers

State = Any
"""An array (R, D), `Optimizers`, or None."""
_NAME = "state/local"
"""Name of the momentum in checkpoints."""
MOMENTA = ("none", "heavy-ball", "exponential")
VARIANCES = ("none", "saga", "lsvrg")


@dataclass(frozen=True, kw_only=True)
class LocalOptions:
    """`local` in the config of a run and in a network file: how a worker gets from its model to its half step.

    >>> LocalOptions.of({"decay": 0.01, "steps": 5}).written()
    {'decay': 0.01, 'momentum': 'none', 'beta': 0.9, 'steps': 5}
    >>> LocalOptions.of({"decya": 0.01})
    Traceback (most recent call last):
    byzmesh.errors.UnknownOption: local has no option 'decya': did you mean 'decay'?
    """

    decay: float = 0.0
    """Weight decay."""
    momentum: str = "none"
    """`none`, `heavy-ball` or `exponential`, as above."""
    beta: float = 0.9
    """How much of the buffer each update keeps, for both kinds of momentum."""
    steps: int = 1
    """Updates per round."""
    clip: float | None = None
    """Length to which longer gradients are shortened."""
    clip_samples: float | None = None
    """Length to which the gradient of every sample of a batch is shortened before they are averaged."""
    variance: str = "none"
    """Variance reduction: `saga` or `lsvrg`."""
    refresh: float | None = None
    """Probability of a new reference point in each update, for `lsvrg`; None: batch / samples of the worker."""
    accumulate: int = 1
    """Batches whose gradients are averaged for one update."""
    optimizer: Any = None
    """An optimizer of PyTorch instead of SGD: a name, a mapping with `name` and options, or a factory."""
    outer: Outer = field(default_factory=Outer)
    """What a worker does with the rule's result."""

    def __post_init__(self) -> None:
        at_least("local decay", self.decay, 0)
        choice("local momentum", self.momentum, MOMENTA)
        fraction("local beta", self.beta, one=False)
        whole("local steps", self.steps, 1)
        if self.clip is not None:
            positive("local clip", self.clip)
        if self.clip_samples is not None:
            positive("local clip_samples", self.clip_samples)
            require(
                self.variance == "none",
                f"local clip_samples goes with gradients of batches, got variance {self.variance!r}; leave one out",
            )
        choice("local variance", self.variance, VARIANCES)
        if self.refresh is not None:
            require(
                self.variance == "lsvrg",
                f"local refresh goes with variance lsvrg, got {self.refresh!r} with {self.variance!r}",
            )
            fraction("local refresh", self.refresh, zero=False)
        whole("local accumulate", self.accumulate, 1)
        if self.optimizer is not None:
            for option, value in (("decay", self.decay), ("momentum", self.momentum)):
                require(
                    value in (0, "none"),
                    f"local {option} is of SGD, got {value!r} with an optimizer; give the optimizer an option for it",
                )
            canonical_optimizer(self.optimizer)

    @property
    def plain(self) -> bool:
        """Whether an update is x - step (g + decay x) with the gradient of the batch itself."""
        sgd = self.momentum == "none" and self.optimizer is None
        return sgd and self.clip is None and self.variance == "none" and self.accumulate == 1

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> LocalOptions:
        """The options of a mapping, as users write it."""
        known = [field.name for field in fields(cls)]
        for option in given:
            if option not in known:
                raise UnknownOption(f"local has no option {option!r}: {nearest(str(option), known)}")
        outer = {"outer": Outer.of(given["outer"])} if "outer" in given else {}
        return cls(**{**given, **outer})

    def written(self) -> dict[str, Any]:
        """The options as a config has them in full.

        Newer options are included only if they are not the default, so that runs without them keep their keys.
        """
        sgd = {"decay": self.decay, "momentum": self.momentum, "beta": self.beta}
        return {
            **(sgd if self.optimizer is None else {"optimizer": canonical_optimizer(self.optimizer)}),
            **({"steps": self.steps} if self.steps > 1 else {}),
            **({"clip": float(self.clip)} if self.clip is not None else {}),
            **({"clip_samples": float(self.clip_samples)} if self.clip_samples is not None else {}),
            **({"variance": self.variance} if self.variance != "none" else {}),
            **({"refresh": self.refresh} if self.variance == "lsvrg" else {}),
            **({"accumulate": self.accumulate} if self.accumulate > 1 else {}),
            **({"outer": self.outer.written()} if self.outer.name != "none" else {}),
        }


def _saved(state: State) -> dict[str, Array]:
    return {} if state is None else {_NAME: to_host(state)}


def _resumed(state: State, arrays: Mapping[str, Array]) -> State:
    return None if state is None else from_host(arrays[_NAME], state)


def _undo(state: State, rows: Integers) -> Callable[[], None]:
    if state is None:
        return lambda: None
    before = state[rows]  # a copy

    def restore() -> None:
        state[rows] = before

    return restore


@dataclass(frozen=True)
class LocalUpdate:
    """Two functions: `init` makes the first state, `apply` one update of all rows; and three that keep states."""

    init: Callable[[Array], State]
    """models (R, D) -> state."""
    apply: Callable[[Array, Array, float, State, Array], State]
    """(models, gradients, step size, state, out (R, D)) -> next state; writes the half steps into `out`, which may be
    `models` or `gradients`. The state given is used up."""
    _: KW_ONLY
    saved: Callable[[State], dict[str, Array]] = _saved
    """state -> arrays by name."""
    resumed: Callable[[State, Mapping[str, Array]], State] = _resumed
    """(first state, arrays) -> the state that was saved."""
    undo: Callable[[State, Integers], Callable[[], None]] = _undo
    """(state, positions of rows) -> a function that gives these rows back what they remember now."""


def local_update(options: LocalOptions, layout: Any = None) -> LocalUpdate:
    """SGD with weight decay, momentum and clipping, or an optimizer over parameters of this layout.

    >>> update = local_update(LocalOptions(decay=0.5))
    >>> out = np.empty((1, 2))
    >>> update.apply(np.array([[1.0, 2.0]]), np.array([[1.0, 0.0]]), 0.1, None, out), out.round(3).tolist()
    (None, [[0.85, 1.9]])
    """
    if options.optimizer is not None:
        return _by_optimizer(options, layout)
    decay, beta, clip = options.decay, options.beta, options.clip
    new = 1.0 - beta if options.momentum == "exponential" else 1.0

    def plain(models: Any, gradients: Any, step: float, state: State, out: Any) -> State:
        keep = 1.0 - decay * step
        gradients = gradients if clip is None else clipped(gradients, clip)
        if isinstance(models, np.ndarray):
            number = models.dtype.type
            descend(models, gradients, number(keep), number(step), out, np.empty(len(models)))
        else:
            out[:] = keep * models - step * gradients
        return None

    def moving(models: Any, gradients: Any, step: float, state: Any, out: Any) -> Any:
        keep = 1.0 - decay * step
        gradients = gradients if clip is None else clipped(gradients, clip)
        if isinstance(models, np.ndarray):
            number = models.dtype.type
            _moving(models, gradients, state, number(beta), number(new), number(keep), number(step), out)
        else:
            state[:] = beta * state + new * gradients
            out[:] = keep * models - step * state
        return state

    if options.momentum == "none":
        return LocalUpdate(lambda models: None, plain)
    return LocalUpdate(_zeros, moving)


def _by_optimizer(options: LocalOptions, layout: Any) -> LocalUpdate:
    def apply(models: Array, gradients: Array, step: float, state: Optimizers, out: Array) -> Optimizers:
        state.step(models, gradients if options.clip is None else clipped(gradients, options.clip), step, out)
        return state

    def resumed(state: Optimizers, arrays: Mapping[str, Array]) -> Optimizers:
        state.resume(arrays)
        return state

    return LocalUpdate(
        lambda models: Optimizers(options.optimizer, layout, models),
        apply,
        saved=lambda state: state.arrays(),
        resumed=resumed,
        undo=lambda state, rows: state.undo(rows),
    )


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
def _moving(models: Any, gradients: Any, buffer: Any, beta: Any, new: Any, keep: Any, step: Any, out: Any) -> None:
    for r in range(models.shape[0]):
        for d in range(models.shape[1]):
            v = beta * buffer[r, d] + new * gradients[r, d]
            buffer[r, d] = v
            out[r, d] = keep * models[r, d] - step * v
