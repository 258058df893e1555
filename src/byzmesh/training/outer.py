"""The outer step: how a worker moves from its model x to what the rule made of the half steps, A.

    none         x <- A
    plain        x <- x - step (x - A)
    heavy-ball   v <- beta v + (x - A),    x <- x - step v
    nesterov     v <- beta v + (x - A),    x <- x - step ((x - A) + beta v)

x - A is a robust aggregate of the workers' pseudo-gradients. With `local: {steps: 50, optimizer: AdamW, outer:
nesterov}`, the plain mean and a complete network this is DiLoCo (Douillard et al. 2023); with another rule and graph it
is its robust, decentralized form. Written as a name or a mapping, e.g. {name: nesterov, step: 0.7, beta: 0.9}.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.checks import choice, fraction, positive
from byzmesh.errors import ConfigError, UnknownOption, nearest
from byzmesh.types import Array

BLOCK = 1 << 18
"""Numbers at a time: the step needs three more arrays, which must not be as large as all models."""
KINDS = ("none", "plain", "heavy-ball", "nesterov")


@dataclass(frozen=True, kw_only=True)
class Outer:
    """An outer step; the defaults are those of DiLoCo.

    >>> Outer.of("plain").written()
    {'name': 'plain', 'step': 0.7}
    >>> outer = Outer.of({"name": "nesterov", "step": 0.5, "beta": 0.5})
    >>> outer.apply(np.array([[1.0]]), np.array([[0.0]]), np.zeros((1, 1)))
    array([[0.25]])
    """

    name: str = "none"
    step: float = 0.7
    beta: float = 0.9

    def __post_init__(self) -> None:
        choice("local outer", self.name, KINDS)
        positive("local outer step", self.step)
        fraction("local outer beta", self.beta, one=False)

    @classmethod
    def of(cls, spec: Any) -> Outer:
        """The outer step that a config writes."""
        if isinstance(spec, str):
            return cls(name=spec)
        if not isinstance(spec, Mapping) or "name" not in spec:
            raise ConfigError(f"local outer must be a name or a mapping with a name, got {spec!r}; e.g. nesterov")
        made = cls(**{key: value for key, value in spec.items() if key in ("name", "step", "beta")})
        known = {"step", "beta"} & set(made.written())
        for option in spec:
            if option != "name" and option not in known:
                raise UnknownOption(f"local outer {made.name} has no option {option!r}: {nearest(str(option), known)}")
        return made

    def written(self) -> dict[str, Any]:
        """As a config has it in full."""
        options: dict[str, Any] = {"name": self.name}
        if self.name != "none":
            options["step"] = self.step
        if self.moves:
            options["beta"] = self.beta
        return options

    @property
    def moves(self) -> bool:
        """Whether it keeps a velocity."""
        return self.name in ("heavy-ball", "nesterov")

    def init(self, models: Any) -> Any:
        """The first velocity (R, D), or None."""
        if not self.moves:
            return None
        return np.zeros_like(models) if isinstance(models, np.ndarray) else models.new_zeros(models.shape)

    def apply(self, models: Any, agreed: Any, velocity: Any) -> Array:
        """(R, D) the next models, from the former ones and what the rule returned; `velocity` is updated."""
        if self.name == "none":
            return agreed  # type: ignore[no-any-return]
        if not isinstance(models, np.ndarray) or models.size <= BLOCK:
            return self._moved(models, agreed, velocity)
        moved: Array = np.empty_like(agreed)
        width = max(1, BLOCK // len(models))
        for start in range(0, models.shape[1], width):
            part = np.s_[:, start : start + width]
            moved[part] = self._moved(models[part], agreed[part], None if velocity is None else velocity[part])
        return moved

    def _moved(self, models: Any, agreed: Any, velocity: Any) -> Array:
        slope = models - agreed
        if self.moves:
            velocity *= self.beta
            velocity += slope
            slope = slope + self.beta * velocity if self.name == "nesterov" else velocity
        moved: Array = models - self.step * slope
        return moved
