"""Ascent: up the honest workers' own loss, where they are now.

    lie_n,j = max_m x_m,j  if g_j > 0,  else min_m x_m,j        m over the victim's honest inbox
    g       = gradient of the average honest loss, on all data, at the average honest model

or, with a length l, counted from the victim's own model

    lie_n   = x_n + l g / |g|

`target` and `box` aim at one wrong model, and lies told long ago are worth as much as new ones. This goal moves: every
lie points to where the loss rises fastest now. Momentum at the honest workers averages gradients over many rounds and
answers too late: trimmed means and medians that hold out against a fixed goal with it fall. No coordinate is
farther out than an honest value, and a trimmed mean cannot tell the lie from one. With a length the lie stands out, and
a rule that clips each message to a radius of its own (Leash, CC) takes exactly this direction, as far as the radius
goes. Threshold riding in the direction `ascent` tells every rule the farthest point along g that it still takes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.attacks.base import Attack, Forged, Scene, View, attacks
from byzmesh.attacks.box import into_box
from byzmesh.attacks.parts import frozen, holdings
from byzmesh.attacks.pull_back import everybody_hears
from byzmesh.checks import positive, require, whole

FAR = 100.0
"""How far away the point is that stands for a direction, in distances between honest models."""


@attacks.register("ascent")
def ascent(period: int = 10, length: float | None = None) -> Attack:
    """In every coordinate the honest value that raises the honest workers' loss most; or, with a length, straight up.

    period  the gradient is taken anew every so many rounds
    length  how far from the victim's own model, whatever honest values are

    Needs data, which a simulation provides.

    >>> ascent(period=0)
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: attack ascent: period must be a whole number of at least 1, got 0
    """
    whole("attack ascent: period", period, 1)
    if length is not None:
        positive("attack ascent: length", length)
        require(length <= 1e38, f"attack ascent: length must be at most 1e38, got {length!r}")

    def forge(view: View, known: Any) -> tuple[Forged, Any]:
        slope = _slope(view, known, period)
        models, inbox = frozen(view.models), holdings(view.scene)
        lies = np.empty((len(inbox), models.shape[1]), models.dtype)
        if length is None:
            corner = np.where(slope > 0.0, np.inf, -np.inf).astype(models.dtype)
            into_box(models, inbox, corner, 1.0, lies)
        else:
            lies[:] = models[view.scene.victims] + length * slope / (np.linalg.norm(slope) or 1.0)
        return Forged(view.scene.liar, view.scene.victim, view.scene.place, view.models, rows=lies), slope

    options = {"period": period, "length": length}
    return Attack("ascent", forge, init=_nothing, observe=_forget, options=options, needs_data=True)


def uphill(period: int = 10) -> Attack:
    """Everybody is told one point, so far up the honest workers' loss that only its direction matters."""

    def forge(view: View, known: Any) -> tuple[Forged, Any]:
        slope = _slope(view, known, period)
        centre = view.models.mean(axis=0, dtype=np.float64)
        spread = np.sqrt(np.square(view.models - centre).sum(axis=1).max())
        length = np.linalg.norm(slope)
        return everybody_hears(view, centre + FAR * (spread or 1.0) * slope / (length or 1.0)), slope

    return Attack("uphill", forge, init=_nothing, observe=_forget, needs_data=True)


def _nothing(scene: Scene) -> Any:
    """No gradient is known yet."""
    return np.zeros(0)


def _forget(view: View, known: Any) -> Any:
    """A gradient from before a pause is not that of where the workers are after it."""
    return known[:0]


def _slope(view: View, known: Any, period: int) -> Any:
    """(D,) the gradient at the average honest model, or the one of the last round in which it was taken."""
    if known.size and view.round.number % period:
        return known
    return np.asarray(view.scene.gradient(view.models.mean(axis=0, dtype=np.float64)), np.float64)
