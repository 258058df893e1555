"""byzmesh: Byzantine-resilient decentralized stochastic optimization.

    >>> import byzmesh as bm, numpy as np
    >>> net = bm.network("paper/two-castle")
    >>> models = np.random.default_rng(0).normal(size=(10, 5))
    >>> out = bm.aggregate_all("ios", net, models, bm.forge("isolation", net, models))
    >>> out.models.shape
    (10, 5)

Heavy modules load when a name is first used, so that importing byzmesh takes a fraction of a second.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from byzmesh._version import __version__
from byzmesh.attacks import Attack, Forged, View, attack
from byzmesh.catalogue import (
    list_attacks,
    list_metrics,
    list_rules,
    list_topologies,
)
from byzmesh.doors import (
    register_attack,
    register_augmentation,
    register_codec,
    register_module,
    register_partition,
    register_problem,
    register_rule,
    register_schedule,
    register_topology,
    register_weights,
)
from byzmesh.networks import Network, network
from byzmesh.round import Round

if TYPE_CHECKING:
    from byzmesh import torch
    from byzmesh.problems.base import Problem, problem
    from byzmesh.rules.aggregate import BadMessage, aggregate, rule
    from byzmesh.rules.base import Block, Inbox, Outcome, Rule
    from byzmesh.rules.bucketing import bucketing
    from byzmesh.rules.contraction import Contraction, Neighbourhoods
    from byzmesh.rules.feasible import Feasible
    from byzmesh.rules.generic import generic
    from byzmesh.rules.gram.rule import gram_rule
    from byzmesh.rules.nnm import nnm
    from byzmesh.simulation.engine import Run, Simulation
    from byzmesh.simulation.exchange import aggregate_all, forge
    from byzmesh.store import open_store
    from byzmesh.sweeps.build import prepare, simulate
    from byzmesh.theory.certify import certify
    from byzmesh.theory.constants import estimate_constants
    from byzmesh.training.evaluation import Evaluation
    from byzmesh.training.metrics import Metric, register_metric

_LAZY = {
    "BadMessage": "rules.aggregate",
    "Block": "rules.base",
    "Contraction": "rules.contraction",
    "Feasible": "rules.feasible",
    "Inbox": "rules.base",
    "Neighbourhoods": "rules.contraction",
    "Outcome": "rules.base",
    "Rule": "rules.base",
    "aggregate": "rules.aggregate",
    "aggregate_all": "simulation.exchange",
    "bucketing": "rules.bucketing",
    "Problem": "problems.base",
    "Run": "simulation.engine",
    "Simulation": "simulation.engine",
    "Evaluation": "training.evaluation",
    "Metric": "training.metrics",
    "register_metric": "training.metrics",
    "certify": "theory.certify",
    "estimate_constants": "theory.constants",
    "forge": "simulation.exchange",
    "open_store": "store",
    "prepare": "sweeps.build",
    "problem": "problems.base",
    "simulate": "sweeps.build",
    "gram_rule": "rules.gram.rule",
    "generic": "rules.generic",
    "nnm": "rules.nnm",
    "rule": "rules.aggregate",
}


def __getattr__(name: str) -> Any:
    if name == "torch":
        return importlib.import_module("byzmesh.torch")
    if name not in _LAZY:
        raise AttributeError(f"module 'byzmesh' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"byzmesh.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "Attack",
    "BadMessage",
    "Block",
    "Contraction",
    "Evaluation",
    "Feasible",
    "Forged",
    "Inbox",
    "Metric",
    "Neighbourhoods",
    "Network",
    "Outcome",
    "Problem",
    "Round",
    "Rule",
    "Run",
    "Simulation",
    "View",
    "__version__",
    "aggregate",
    "aggregate_all",
    "attack",
    "bucketing",
    "certify",
    "estimate_constants",
    "forge",
    "generic",
    "gram_rule",
    "list_attacks",
    "list_metrics",
    "list_rules",
    "list_topologies",
    "network",
    "nnm",
    "open_store",
    "prepare",
    "problem",
    "register_attack",
    "register_augmentation",
    "register_codec",
    "register_metric",
    "register_module",
    "register_partition",
    "register_problem",
    "register_rule",
    "register_schedule",
    "register_topology",
    "register_weights",
    "rule",
    "simulate",
    "torch",
]
