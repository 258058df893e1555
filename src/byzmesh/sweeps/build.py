"""From a config to a simulation: `simulate` and its parts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias, TypeVar

import numpy as np

from byzmesh.attacks.base import Attack, attacks
from byzmesh.channels import Stage, channel_stages
from byzmesh.config.advice import advice
from byzmesh.config.schema import resolve
from byzmesh.errors import Advice
from byzmesh.networks import Network
from byzmesh.networks.processes import Process
from byzmesh.networks.processes import process as make_process
from byzmesh.plugins import load_plugins
from byzmesh.problems.base import Problem, problems
from byzmesh.problems.data.split import Sites
from byzmesh.rules.base import Rule, rules
from byzmesh.simulation.engine import Simulation
from byzmesh.simulation.run import Run
from byzmesh.training.local import LocalOptions
from byzmesh.training.local_round import learn
from byzmesh.training.objective import sites_of, weighed
from byzmesh.training.schedules import schedule

T = TypeVar("T")
Spec: TypeAlias = str | Mapping[str, Any] | T | None
"""What users write for a part of a run: a name, a mapping with `name` and options, or the object itself."""


def network_as_run(
    config: Mapping[str, Any], network: Network | None = None, problem: Problem | None = None
) -> Network:
    """The network that a canonical config runs on: without an attack, only the honest workers, renumbered.

    With objective: samples its weights are those of the samples that the problem gives each site.

    >>> from byzmesh.config.schema import resolve
    >>> network_as_run(resolve({"network": "paper/two-castle", "attack": "none"})).n
    10
    """
    load_plugins(config.get("plugins", ()))
    network = network or Network.from_spec(config["network"])
    if config.get("objective") == "samples":
        network = weighed(problem or problems.build(config["problem"]), network, config["seed"])
    return network.honest_only() if config["attack"]["name"] == "none" else network


def build(config: Mapping[str, Any], **parts: Any) -> Simulation:
    """The simulation of a canonical config; `parts` are objects that replace those the config names."""
    network = network_as_run(config, parts.get("network"), parts.get("problem"))
    attack: Attack = parts.get("attack") or attacks.build(config["attack"])
    if len(network.byzantine) == 0:  # an older stored config may still name an attack
        attack = attacks.build("none")
    problem: Problem = parts.get("problem") or problems.build(config["problem"])
    whole = parts.get("network") or Network.from_spec(config["network"])
    sites = sites_of(config.get("objective", "workers"), problem, whole, attack.poisons_data)
    task = problem.bind(
        workers=len(network.honest),
        seed=config["seed"],
        dtype=config["dtype"],
        liars=len(network.byzantine) if attack.poisons_data else 0,
        threads=config["threads"],
        poison=attack.poison,
        sites=sites,
    )
    rule: Rule = parts.get("rule") or rules.build(config["rule"])
    changing = parts.get("process") or make_process(config.get("process"))
    if config["attack"]["name"] == "none":
        changing = [one.among(whole.honest, whole.n) if one.among else one for one in changing]
    options = parts.get("local") or LocalOptions.of(config["local"])

    @cache
    def wrong_model(rounds: int) -> Any:
        count = len(network.honest)
        twice = None if sites is None else Sites(count=sites.count, of_row=np.tile(whole.honest, 2))
        both = problem.bind(
            workers=count,
            liars=count,
            seed=config["seed"],
            dtype=config["dtype"],
            threads=config["threads"],
            sites=twice,
        )
        return learn(both, count + np.arange(count), rounds, schedule(config["step"]), options)

    return Simulation(
        task=task,
        network=network,
        rule=rule,
        attack=attack,
        rounds=config["rounds"],
        schedule=schedule(config["step"]),
        local=options,
        f=config["f"],
        evaluate_every=config["evaluate_every"],
        seed=config["seed"],
        threads=config["threads"],
        measure=tuple(config["measure"]),
        process=tuple(changing),
        channel=parts.get("channel") or channel_stages(config.get("channel")),
        config=config,
        wrong_model=wrong_model,
    )


def prepare(
    *,
    network: Spec[Network] = None,
    problem: Spec[Problem] = None,
    rule: Spec[Rule] | Callable[..., Any] = None,
    attack: Spec[Attack] | Callable[..., Any] = None,
    f: int | str | Sequence[int] | Mapping[str, Any] | None = None,
    b: float | Sequence[float] | None = None,
    rounds: int | None = None,
    evaluate_every: int | None = None,
    step: float | str | Mapping[str, Any] | None = None,
    local: Mapping[str, Any] | None = None,
    seed: int | None = None,
    dtype: str | None = None,
    threads: int | None = None,
    measure: str | Sequence[str] | None = None,
    process: Spec[Process] | Sequence[Spec[Process]] = None,
    channel: Spec[Stage] | Sequence[Spec[Stage]] = None,
    objective: str | None = None,
    labels: Mapping[str, str | int | float | bool] | None = None,
    plugins: str | Sequence[str] | None = None,
    profile: str | None = None,
    **unknown: Any,
) -> Simulation:
    """A simulation to run step by step; arguments as in `simulate`.

    >>> import byzmesh as bm
    >>> ring = {"name": "ring", "n": 5}
    >>> run = bm.prepare(problem="quadratic", network=ring, rule="weimean", rounds=3, evaluate_every=1)
    >>> [record["round"] for record in run]
    [0.0, 1.0, 2.0, 3.0]
    """
    config: dict[str, Any] = dict(locals())
    config |= config.pop("unknown")  # `resolve` suggests the nearest key
    for key, registry in (("rule", rules), ("attack", attacks)):
        if callable(config[key]):
            config[key] = registry.build(config[key])
    if isinstance(problem, Mapping) and _has_objects(problem):
        config["problem"] = problems.build(problem)
    kinds = {"problem": Problem, "network": Network, "rule": Rule, "attack": Attack}
    parts = {key: config[key] for key, kind in kinds.items() if isinstance(config[key], kind)}
    if config["process"] is not None:
        parts["process"] = config["process"] = make_process(config["process"])
    if config["channel"] is not None:
        parts["channel"] = config["channel"] = channel_stages(config["channel"])
    resolved = resolve(config)
    if isinstance(local, Mapping) and _has_objects(local.get("optimizer")):
        parts["local"] = LocalOptions.of(local)
    return build(resolved, **parts)


def _has_objects(value: Any) -> bool:
    """Whether a spec has functions, arrays or data sets in it, of which a config could only keep the names."""
    if isinstance(value, Mapping):
        return any(_has_objects(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return any(_has_objects(item) for item in value)
    return not (value is None or isinstance(value, (bool, int, float, str, np.generic)))


def simulate(
    *,
    network: Spec[Network] = None,
    problem: Spec[Problem] = None,
    rule: Spec[Rule] | Callable[..., Any] = None,
    attack: Spec[Attack] | Callable[..., Any] = None,
    f: int | str | Sequence[int] | Mapping[str, Any] | None = None,
    b: float | Sequence[float] | None = None,
    rounds: int | None = None,
    evaluate_every: int | None = None,
    step: float | str | Mapping[str, Any] | None = None,
    local: Mapping[str, Any] | None = None,
    seed: int | None = None,
    dtype: str | None = None,
    threads: int | None = None,
    measure: str | Sequence[str] | None = None,
    process: Spec[Process] | Sequence[Spec[Process]] = None,
    channel: Spec[Stage] | Sequence[Spec[Stage]] = None,
    objective: str | None = None,
    labels: Mapping[str, str | int | float | bool] | None = None,
    plugins: str | Sequence[str] | None = None,
    profile: str | None = None,
    progress: bool = False,
    **unknown: Any,
) -> Run:
    """Train on a network under attack and return the `Run`. Arguments not given are as in the profile.

    network         a topology's name, a mapping with `name` and parameters, a file, or a `bm.Network`
    problem         "softmax" (default), "logistic", "least-squares", "quadratic", "torch": a name, a mapping with
                    `name` and options, or `bm.problem(...)`
    rule            a name, a mapping, a `bm.Rule` or a function (own, received, weights, f) -> vector; default
                    `bm.RECOMMENDED_RULE`
    attack          a name, a mapping, a `bm.Attack` or a function (own, received) -> vector; "none" (default) runs the
                    honest workers' graph alone
    f               bound on the lying neighbours: "exact" (default), "max", "tolerable" (the most that a worker's
                    weights allow), a number, or one per honest worker
    b               instead of f: bound on what they weigh, a number or one per honest worker
    rounds          how many (default 1000)
    evaluate_every  rounds between evaluations (default 100)
    step            step-size schedule: a number or a mapping (default 0.9 / sqrt(k + 1); an optimizer's own rate)
    local           weight decay, momentum, `steps` per round, `clip`, variance reduction (`saga`, `lsvrg`; default
                    decay 0.01, one step, none of the others)
    seed            of all random draws (default 0)
    dtype           "float32" or "float64"
    threads         for large problems (default 1)
    measure         metrics to record besides accuracy, loss and consensus: names of `bm.list_metrics()`, e.g.
                    "gradient", "average_accuracy", "class_accuracy", or "certificate", which compares each evaluated
                    round with the theory (contraction, its violations, chi^2 of the mixing)
    process         how the network changes from round to round: names, mappings or `bm.Process`es of
                    `bm.list_processes()`, one or a list, e.g. [{"name": "link-loss", "p": 0.1}, "sleep"]; default: not
    channel         what happens to a model on its way to the neighbours: names, mappings or stages of
                    `bm.list_stages()`, one or a list, e.g. [{"name": "top-k", "fraction": 0.1}, "int8"]; default: none
    objective       "workers" (default): every worker counts the same; "samples": every sample does
    labels          your own names for the run: rows and columns of tables
    plugins         scripts or modules to import first; they define rules, attacks, ... that other arguments name
    profile         "paper": the settings behind the published numbers; "guarded": the rule Leash, against liars who
                    know the rule, where every worker has several classes (docs/recommendation.md)
    progress        show a bar, in a notebook or a terminal

    >>> import byzmesh as bm
    >>> ring = {"name": "ring", "n": 5}
    >>> run = bm.simulate(problem="quadratic", network=ring, rule="weimean", rounds=20)
    >>> run.status, sorted(run.metrics)
    ('finished', ['consensus_error', 'disagreement', 'loss', 'round'])
    """
    config: dict[str, Any] = dict(locals())
    del config["progress"]
    prepared = prepare(**config.pop("unknown"), **config)
    if told := advice(prepared.config):
        warnings.warn(Advice(told), stacklevel=2)
    return prepared.run(progress=progress)
