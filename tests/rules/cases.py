"""Shared by the tests of rules: inboxes of one receiver, and how to call each rule and its oracle."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.round import Round
from byzmesh.rules.base import rules

WRAPPERS = ("bucketing", "NNM", "WeightedNNM", "ARC", "generic")

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("WeiMean", {}),
    ("NoComm", {}),
    ("CooMed", {"even": "middle"}),
    ("CooMed", {"even": "lower"}),
    ("GeoMed", {}),
    ("GeoMed", {"steps": 80}),
    ("Krum", {}),
    ("MultiKrum", {}),
    ("MultiKrum", {"m": 2}),
    ("TriMean", {}),
    ("FABA", {"own": "inside"}),
    ("FABA", {"own": "outside"}),
    ("IOS", {}),
    ("CC", {"tau": 0.7}),
    ("CC", {"tau": 0.7, "iterations": 3}),
    ("CC", {"tau": 0.7, "centre": "memory"}),
    ("SCC", {"tau": 0.7}),
    ("DRSA", {"penalty": 0.3, "at": "half"}),
    ("DRSA", {"penalty": 0.3, "at": "start"}),
    ("SimRew", {"divergence": "kl"}),
    ("SimRew", {"divergence": "published"}),
    ("Bulyan", {}),
    ("MeaMed", {}),
    ("NNA", {}),
    ("MDA", {}),
    ("UBAR", {"rho": 0.6, "alpha": 0.4}),
    ("UBAR", {"rho": 0.6, "alpha": 0.4, "fallback": "best"}),
    ("Phocas", {}),
    ("CAF", {}),
    ("SMEA", {}),
    ("Zeno", {}),
    ("Zeno", {"rho": 2.0}),
    ("ByRDiE", {"block": 4, "repeats": 2}),
    ("ByRDiE", {"block": None}),
    ("Reprieve", {}),
    ("Reprieve", {"c": 1.4}),
    ("Tether", {}),
    ("Tether", {"c": 1.2}),
    ("LazyIOS", {}),
    ("GTS", {}),
    ("ClippedGossip", {}),
    ("CS+", {}),
    ("RTC", {}),
    ("BALANCE", {"gamma": 1.3, "alpha": 0.3}),
    ("Leash", {"c": 0.8}),
    ("Leash", {"c": 0.8, "agree": 0}),
    ("WeightedCooMed", {}),
    ("WeightedTriMean", {}),
    ("WeightedKrum", {}),
    ("WeightedGeoMed", {}),
]


ROUND = 5
"""The number of the round in which a rule with turns (ByRDiE, Leash) is called."""


def loss(vector: Any) -> float:
    """A loss on the receiver's own batch, for UBAR and Zeno."""
    return float(np.sum(np.minimum(np.abs(np.asarray(vector, np.float64)[: len(vector) // 2 + 1]), 1e100) ** 2))


def extras(
    name: str, options: dict[str, Any], previous: Any, memory: Any, step: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Further keywords for the oracle and for `bm.aggregate`."""
    if name == "DRSA":
        both = {"previous": previous} if options["at"] == "start" else {}
        return {"step": step, **both}, {"round": Round(step_size=step), **both}
    if name == "Leash":
        return {"step": step, "number": ROUND}, {"round": Round(step_size=step, number=ROUND)}
    if name == "ByRDiE":
        return {"previous": previous, "number": ROUND}, {"previous": previous, "round": Round(number=ROUND)}
    if name == "SimRew":
        return {"previous": previous}, {"previous": previous}
    if name == "CC" and options.get("centre") == "memory":
        return {"memory": memory}, {"centre": memory}
    if name in ("UBAR", "Zeno"):
        return {"loss": loss}, {"loss": loss}
    return {}, {}


def largest_f(name: str, neighbours: int) -> int:
    """Largest f a test should try: the rule's own bound, or d - 1 for rules that ignore f."""
    bound = rules.build(name).largest_f(neighbours)
    return min(bound, max(0, neighbours - 1))


def random_weights(random: np.random.Generator, size: int) -> np.ndarray:
    """Random mixing weights, all different."""
    weight = random.uniform(0.2, 1.0, size)
    return np.asarray(weight / weight.sum())
