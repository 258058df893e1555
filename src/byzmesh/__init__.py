"""byzmesh: Byzantine-resilient decentralized stochastic optimization.

    >>> import byzmesh as bm, numpy as np
    >>> net = bm.network("paper/two-castle")
    >>> models = np.random.default_rng(0).normal(size=(10, 5))
    >>> out = bm.aggregate_all("ios", net, models, bm.forge("isolation", net, models))
    >>> out.models.shape
    (10, 5)

A module loads when one of its names is first used, so `import byzmesh` takes some hundredths of a second.
"""

from __future__ import annotations

from importlib import import_module, util
from typing import TYPE_CHECKING, Any

from byzmesh._version import __version__

if TYPE_CHECKING:
    from byzmesh import torch
    from byzmesh.attacks import Attack, Forged, View, attack
    from byzmesh.catalogue import (
        list_attacks,
        list_augmentations,
        list_metrics,
        list_modules,
        list_partitions,
        list_problems,
        list_processes,
        list_rules,
        list_schedules,
        list_stages,
        list_topologies,
        list_weights,
    )
    from byzmesh.doors import (
        register_attack,
        register_augmentation,
        register_module,
        register_partition,
        register_problem,
        register_process,
        register_rule,
        register_schedule,
        register_stage,
        register_topology,
        register_weights,
    )
    from byzmesh.networks import Network, network
    from byzmesh.networks.processes import Process, process
    from byzmesh.problems.base import Problem, problem
    from byzmesh.reports.comparison import plot
    from byzmesh.round import Round
    from byzmesh.rules.aggregate import BadMessage, aggregate, rule
    from byzmesh.rules.arc import arc
    from byzmesh.rules.base import Block, Inbox, Outcome, Rule
    from byzmesh.rules.bucketing import bucketing
    from byzmesh.rules.contraction import Contraction, Neighbourhoods
    from byzmesh.rules.feasible import Feasible
    from byzmesh.rules.generic import generic
    from byzmesh.rules.gram.rule import gram_rule
    from byzmesh.rules.nnm import nnm
    from byzmesh.rules.weighted_nnm import weighted_nnm
    from byzmesh.simulation.engine import Simulation
    from byzmesh.simulation.exchange import aggregate_all, forge
    from byzmesh.simulation.run import Run
    from byzmesh.store import open_store
    from byzmesh.studies.audit.audit import audit
    from byzmesh.sweeps.build import prepare, simulate
    from byzmesh.sweeps.theorems import check_theorems
    from byzmesh.theory.certify import certify
    from byzmesh.theory.constants import estimate_constants
    from byzmesh.training.evaluation import Evaluation
    from byzmesh.training.metrics import Metric, register_metric
    from byzmesh.training.profiles import RECOMMENDED_RULE

_HOME = {
    "Attack": "attacks",
    "BadMessage": "rules.aggregate",
    "Block": "rules.base",
    "Contraction": "rules.contraction",
    "Evaluation": "training.evaluation",
    "Feasible": "rules.feasible",
    "Forged": "attacks",
    "Inbox": "rules.base",
    "Metric": "training.metrics",
    "Neighbourhoods": "rules.contraction",
    "Network": "networks",
    "Outcome": "rules.base",
    "Problem": "problems.base",
    "Process": "networks.processes",
    "RECOMMENDED_RULE": "training.profiles",
    "Round": "round",
    "Rule": "rules.base",
    "Run": "simulation.run",
    "Simulation": "simulation.engine",
    "View": "attacks",
    "aggregate": "rules.aggregate",
    "aggregate_all": "simulation.exchange",
    "arc": "rules.arc",
    "attack": "attacks",
    "audit": "studies.audit.audit",
    "bucketing": "rules.bucketing",
    "certify": "theory.certify",
    "check_theorems": "sweeps.theorems",
    "estimate_constants": "theory.constants",
    "forge": "simulation.exchange",
    "generic": "rules.generic",
    "gram_rule": "rules.gram.rule",
    "list_attacks": "catalogue",
    "list_augmentations": "catalogue",
    "list_metrics": "catalogue",
    "list_modules": "catalogue",
    "list_partitions": "catalogue",
    "list_problems": "catalogue",
    "list_processes": "catalogue",
    "list_rules": "catalogue",
    "list_schedules": "catalogue",
    "list_stages": "catalogue",
    "list_topologies": "catalogue",
    "list_weights": "catalogue",
    "network": "networks",
    "nnm": "rules.nnm",
    "open_store": "store",
    "plot": "reports.comparison",
    "prepare": "sweeps.build",
    "problem": "problems.base",
    "process": "networks.processes",
    "register_attack": "doors",
    "register_augmentation": "doors",
    "register_metric": "training.metrics",
    "register_module": "doors",
    "register_partition": "doors",
    "register_problem": "doors",
    "register_process": "doors",
    "register_rule": "doors",
    "register_schedule": "doors",
    "register_stage": "doors",
    "register_topology": "doors",
    "register_weights": "doors",
    "rule": "rules.aggregate",
    "simulate": "sweeps.build",
    "weighted_nnm": "rules.weighted_nnm",
}
"""Public name -> the module that defines it."""


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f"byzmesh.{_HOME[name]}"), name)
    elif not name.startswith("_") and util.find_spec(f"byzmesh.{name}"):
        value = import_module(f"byzmesh.{name}")
    else:
        raise AttributeError(f"module 'byzmesh' has no attribute {name!r}")
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
    "Process",
    "RECOMMENDED_RULE",
    "Round",
    "Rule",
    "Run",
    "Simulation",
    "View",
    "__version__",
    "aggregate",
    "aggregate_all",
    "arc",
    "attack",
    "audit",
    "bucketing",
    "certify",
    "check_theorems",
    "estimate_constants",
    "forge",
    "generic",
    "gram_rule",
    "list_attacks",
    "list_augmentations",
    "list_metrics",
    "list_modules",
    "list_partitions",
    "list_problems",
    "list_processes",
    "list_rules",
    "list_schedules",
    "list_stages",
    "list_topologies",
    "list_weights",
    "network",
    "nnm",
    "open_store",
    "plot",
    "prepare",
    "problem",
    "process",
    "register_attack",
    "register_augmentation",
    "register_metric",
    "register_module",
    "register_partition",
    "register_problem",
    "register_process",
    "register_rule",
    "register_schedule",
    "register_stage",
    "register_topology",
    "register_weights",
    "rule",
    "simulate",
    "torch",
    "weighted_nnm",
]
