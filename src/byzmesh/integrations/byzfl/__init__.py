"""Aggregators with ByzFL's names, constructor arguments and call, computed by our rules.

A script runs with them after one change:

    import byzfl                             ->  import byzmesh.integrations.byzfl as byzfl
    from byzfl import run_benchmark, ...     ->  from byzmesh.integrations.byzfl import run_benchmark, ...

The classes below take the place of ByzFL's; what else ByzFL has (attacks, models, `run_benchmark`, ...) is passed on if
ByzFL is installed, with our classes in the place of its own, so that its benchmark builds ours from the names in its
config. Besides ByzFL's names there are IOS, LazyIOS, Reprieve, Tether, Bulyan and Phocas.

    vectors   (n, D), or a list of n vectors, NumPy or torch, on any device: torch tensors elsewhere come to the host
    returns   (D,), for a pre-aggregator (n, D), of the same type and device

Every class computes what ByzFL's documentation defines. Three things differ from its code: CAF and SMEA use exact
eigenvectors where ByzFL takes one random step of the power method; a vector that is not finite is left out and counts
as one of the f; the inputs are never changed. A rule without a receiver's own model, as here, is a rule on a server
(`byzmesh.integrations.server`), with the coordinate-wise median in the place of the global model: it has no vote.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from byzmesh.errors import MissingExtra
from byzmesh.integrations.byzfl import aggregators, preaggregators
from byzmesh.integrations.byzfl.aggregators import (
    CAF,
    IOS,
    MDA,
    SMEA,
    Average,
    Bulyan,
    CenteredClipping,
    GeometricMedian,
    Krum,
    LazyIOS,
    Meamed,
    Median,
    MoNNA,
    MultiKrum,
    Phocas,
    Reprieve,
    Tether,
    TrMean,
)
from byzmesh.integrations.byzfl.preaggregators import ARC, NNM, Bucketing, Clipping

__all__ = [
    "Average",
    "Median",
    "TrMean",
    "GeometricMedian",
    "Krum",
    "MultiKrum",
    "CenteredClipping",
    "MDA",
    "MoNNA",
    "Meamed",
    "CAF",
    "SMEA",
    "IOS",
    "LazyIOS",
    "Reprieve",
    "Tether",
    "Bulyan",
    "Phocas",
    "NNM",
    "Bucketing",
    "Clipping",
    "ARC",
]


def __getattr__(name: str) -> Any:
    """What else ByzFL has, with our aggregators in the place of its own."""
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        import byzfl
    except ImportError as error:
        missing = MissingExtra("byzfl", f"byzmesh.integrations.byzfl.{name}")
        raise AttributeError(f"{missing} ({error})") from error
    for ours, theirs in (
        (aggregators, import_module("byzfl.aggregators.aggregators")),
        (preaggregators, import_module("byzfl.aggregators.preaggregators")),
    ):
        for known in __all__:
            if hasattr(ours, known):
                setattr(theirs, known, getattr(ours, known))
    try:
        return getattr(byzfl, name)
    except AttributeError:
        raise AttributeError(f"neither byzmesh.integrations.byzfl nor byzfl has {name!r}") from None
