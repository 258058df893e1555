"""What a stage does to a vector on its way, as a bound."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Distortion:
    """How far what arrives of x may be from it: sqrt(D) (peak max |x| + least) + length ||x||, and normal noise.

    noise, pair_noise  standard deviation on every coordinate, of the sender's own and of each of its neighbours' pairs
    """

    peak: float = 0.0
    length: float = 0.0
    least: float = 0.0
    noise: float = 0.0
    pair_noise: float = 0.0
