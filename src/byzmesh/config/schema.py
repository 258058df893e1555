"""The config of one run: what a user writes, and its canonical form with every default written out.

    problem:  softmax                                    a name, or a mapping with `name` and options
    network:  {name: two-castle, k: 6, byzantine: [7, 9]}   or {file: graph.edges, ...} or {edges: [[0, 1], ...], ...}
    rule:     {name: CC, tau: 0.3}
    attack:   sign-flipping                              `none` runs the honest workers' graph alone
    f:        exact                                      or max, tolerable, a number, one per honest worker, quantile
    b:        0.25                                       instead of f: the lies weigh at most this
    objective: samples                                   every sample counts the same; default: every worker
    process:  [{name: link-loss, p: 0.1}, sleep]         how the network changes from round to round; default: not
    channel:  [{name: top-k, fraction: 0.1}, int8]       what happens to a model on its way; default: nothing
    plugins:  [mine.py]                                  scripts or modules whose rules, attacks, ... this file names
    labels:   {case: my-first}                           your own names: rows and columns of tables
    rounds, evaluate_every, seed, dtype, threads, measure
    step:     {name: inverse-sqrt, a: 0.9, b: 1}         step-size schedule
    local:    {decay: 0.01, momentum: none, beta: 0.9}   local update; with steps: 5 per round, clip: 1.0,
                                                         variance: saga, or lsvrg and refresh: 0.01;
                                                         optimizer: AdamW, accumulate: 4, outer: nesterov
    profile:  paper                                      a named set of defaults for all of the above; or guarded

Two configs of the same run have the same canonical form, which identifies the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from byzmesh.attacks.base import attacks
from byzmesh.channels import canonical_channel
from byzmesh.checks import choice
from byzmesh.config.canonical import canonical_network, canonical_process, plain
from byzmesh.config.paths import anchor, anchor_data, anchor_optimizer
from byzmesh.errors import ConfigError, NoLiars, UnknownOption, nearest
from byzmesh.networks.fault_bounds import WEIGHT, WORDS
from byzmesh.networks.processes.quantile import WORD, Quantile
from byzmesh.plugins import load_plugins
from byzmesh.problems.base import Problem, problems
from byzmesh.problems.data.partition import partitions
from byzmesh.problems.neural.augment import canonical_augmentations
from byzmesh.problems.neural.base import canonical_base
from byzmesh.problems.neural.lora import canonical_adapter
from byzmesh.problems.neural.modules import canonical_module
from byzmesh.problems.neural.text import canonical_text
from byzmesh.registry import Registry
from byzmesh.rules.base import rules
from byzmesh.training.local import LocalOptions
from byzmesh.training.metrics import canonical_measures
from byzmesh.training.objective import OBJECTIVES
from byzmesh.training.optimizers import own_rate
from byzmesh.training.profiles import profile
from byzmesh.training.schedules import as_spec, schedules


class TrainingConfig(BaseModel):
    """The keys that a run and a network of peers have in common, in canonical form; see `resolve_training`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    problem: dict[str, Any]
    rule: dict[str, Any]
    rounds: int = Field(ge=0)
    evaluate_every: int = Field(ge=1)
    step: dict[str, Any]
    local: dict[str, Any]
    seed: int
    dtype: str
    threads: int = Field(ge=1)
    measure: list[str]
    process: list[dict[str, Any]] = Field(default_factory=list)
    channel: list[dict[str, Any]] = Field(default_factory=list)
    labels: dict[str, str | int | float | bool] = Field(default_factory=dict)
    plugins: list[str] = Field(default_factory=list)

    @field_validator("dtype")
    @classmethod
    def _precision(cls, value: str) -> str:
        if value not in ("float32", "float64"):
            raise ValueError(f"must be float32 or float64, got {value!r}")
        return value


class RunConfig(TrainingConfig):
    """The fields of a run's config and their types; `resolve` fills in what depends on others."""

    network: dict[str, Any]
    attack: dict[str, Any]
    f: int | str | list[int] | dict[str, Any]
    objective: str = "workers"

    @field_validator("f")
    @classmethod
    def _bound(cls, value: Any) -> Any:
        if isinstance(value, str) and value not in WORDS:
            raise ValueError(f"must be a number, one per honest worker, {', '.join(WORDS)} or quantile, got {value!r}")
        if isinstance(value, dict) and WEIGHT not in value and Quantile.of(value) is None:
            raise ValueError(f"must be a number, a list, a word or {{name: quantile, delta: 0.05}}, got {value!r}")
        if isinstance(value, int) and value < 0:
            raise ValueError(f"must be at least 0, got {value}")
        return value


TRAINING = tuple(TrainingConfig.model_fields)
KEYS = (*RunConfig.model_fields, "b", "profile")
M = TypeVar("M", bound=BaseModel)


def resolve(raw: Mapping[str, Any], folder: str | Path = ".") -> dict[str, Any]:
    """The canonical config: names spelled in full, every default written out, the profile's options filled in.

    folder  what relative file names in the config are relative to

    >>> resolve({"network": "paper/two-castle", "rule": "tm", "profile": "paper"})["rule"]
    {'name': 'TriMean'}
    >>> resolve({"netwrok": "ring"})
    Traceback (most recent call last):
    byzmesh.errors.UnknownOption: config has no key 'netwrok': did you mean 'network'?
    """
    for key in raw:
        if key not in KEYS:
            raise UnknownOption(f"config has no key {key!r}: {nearest(str(key), KEYS)}")
    given = anchor_optimizer(anchor({key: value for key, value in raw.items() if value is not None}, folder), folder)
    name = given.pop("profile", None)
    training = resolve_training(given, folder, name)
    if "network" not in given:
        raise ConfigError("config needs the key 'network'; give it a topology's name or a file")
    attack = _variant(attacks, given.get("attack", "none"), bool(profile(name)["published"]), _split(training))
    network = canonical_network(given["network"])
    if attack["name"] != "none" and not network["byzantine"]:
        raise NoLiars(attack["name"])
    # the order in which a config is shown
    config = {
        "problem": training.pop("problem"),
        "network": network,
        "rule": training.pop("rule"),
        "attack": attack,
        "f": _bound(_counted_or_weighed(given), training),
        **({"objective": "samples"} if _by_samples(given, network) else {}),
        **training,
    }
    checked = validated(RunConfig, plain(config), "config").model_dump(exclude_unset=True)
    return {key: checked[key] for key in config}


def resolve_training(
    raw: Mapping[str, Any], folder: str | Path = ".", profile_name: str | None = None, where: str = "config"
) -> dict[str, Any]:
    """The keys of a config that say how to train, canonical: for a run's config and for a network file.

    raw     may have other keys too
    folder  base of relative file names
    where   the name of the config in messages

    >>> resolve_training({"rule": "tm", "rounds": 5, "local": {"decay": 0}})["local"]
    {'decay': 0, 'momentum': 'none', 'beta': 0.9}
    """
    given = anchor({key: raw[key] for key in TRAINING if raw.get(key) is not None}, folder)
    plugins = load_plugins(_listed(where, "plugins", given.get("plugins", [])))
    defaults = profile(profile_name)
    published = bool(defaults["published"])
    chosen = given.get("problem", "softmax")
    problem = problems.canonical(chosen, problems.entry_of(chosen).published if published else {})
    problem = anchor_data(problem, folder)
    if not isinstance(chosen, Problem):  # such an object knows its own spec
        if "module" in problem:
            problem["module"] = canonical_module(problem["module"])
        if isinstance(problem.get("dataset"), Mapping):
            problem["dataset"] = canonical_text(problem["dataset"])
        if "augment" in problem:
            problem["augment"] = canonical_augmentations(problem["augment"])
        if "adapter" in problem:
            problem |= {"base": canonical_base(problem["base"]), "adapter": canonical_adapter(problem["adapter"])}
    if "partition" in problem:
        problem["partition"] = partitions.canonical(problem["partition"])
    split = _split({"problem": problem})
    if published:
        _check_built(problems, given.get("problem"), split)
    local = LocalOptions.of(_local(where, given.get("local", {}), defaults["local"]))
    config = {
        "problem": problem,
        "rule": _variant(rules, given.get("rule", defaults["rule"]), published, split),
        "rounds": given.get("rounds", defaults["rounds"]),
        "evaluate_every": given.get("evaluate_every", defaults["evaluate_every"]),
        "step": schedules.canonical(as_spec(given["step"] if "step" in given else _step(local, defaults["step"]))),
        "local": local.written(),
        "seed": given.get("seed", 0),
        "dtype": given.get("dtype", defaults["dtype"]),
        "threads": given.get("threads", 1),
        "measure": canonical_measures(_listed(where, "measure", given.get("measure", []))),
        **({"process": chosen_process} if (chosen_process := canonical_process(given.get("process"))) else {}),
        **({"channel": carried} if (carried := canonical_channel(given.get("channel"))) else {}),
        **({"labels": _labels(where, given["labels"])} if given.get("labels") else {}),
        **({"plugins": plugins} if plugins else {}),
    }
    return validated(TrainingConfig, plain(config), where).model_dump(exclude_unset=True)


def validated(model: type[M], content: Mapping[str, Any], where: str) -> M:
    """The record of a mapping; a mistake is a one-line error that names the key.

    >>> validated(TrainingConfig, {**resolve_training({}), "rounds": -3}, "config")
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: config rounds: input should be greater than or equal to 0, got -3
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        types = ("list[", "dict[", "tuple[", "int", "str")
        place = ".".join(str(part) for part in first["loc"] if not str(part).startswith(types))
        reason = first["msg"].removeprefix("Value error, ")
        reason = reason[0].lower() + reason[1:]
        shown = "" if "got" in reason else f", got {first['input']!r}"
        raise ConfigError(f"{where} {place}: {reason}{shown}") from None


def _bound(f: Any, training: Mapping[str, Any]) -> Any:
    """f in full; `quantile` is about the rounds of a process."""
    quantile = Quantile.of(f)
    if quantile is None:
        return f
    if not training.get("process"):
        raise ConfigError(
            "f quantile is about the liars that a process lets into an inbox; add a process, or use exact"
        )
    return {"name": WORD, "delta": quantile.delta}


def _split(config: Mapping[str, Any]) -> str:
    """The name of the partition, `iid` for problems without one."""
    partition = config["problem"].get("partition")
    return str(partition["name"]) if partition else "iid"


def _variant(registry: Registry[Any], spec: Any, published: bool, split: str) -> dict[str, Any]:
    if published:
        _check_built(registry, spec, split)
    known = published and registry.is_registered(spec)
    defaults = registry.entry_of(spec).published_options(split) if known else {}
    result = registry.canonical(spec, defaults)
    for part in {"inner", "other"} & result.keys():
        result[part] = _variant(registry, result[part], published, split)
    return result


def _check_built(registry: Registry[Any], spec: Any, split: str) -> None:
    """Refuse a ready-made part that contradicts the profile: it can no longer be changed."""
    if isinstance(spec, str | Mapping) or not hasattr(spec, "options"):
        return
    part: Any = {"name": spec.name, **spec.options}
    while isinstance(part, Mapping):
        wanted = registry.entry_of(part).published_options(split) if registry.knows(part["name"]) else {}
        missing = {option: value for option, value in wanted.items() if part.get(option) != value}
        if missing:
            told = ", ".join(f"{option}={value!r}" for option, value in missing.items())
            raise ConfigError(
                f"profile: {registry.kind} {part['name']} is already built, and not with {told}; "
                "build it with that, or give its name and options instead"
            )
        part = part.get("inner")


def _counted_or_weighed(given: Mapping[str, Any]) -> Any:
    """f as written, or b as the bound on a weight that it is."""
    if "b" not in given:
        return given.get("f", "exact")
    if "f" in given:
        raise ConfigError("config: give f, how many neighbours lie, or b, how much they weigh: one of the two")
    return {WEIGHT: given["b"]}


def _by_samples(given: Mapping[str, Any], network: Mapping[str, Any]) -> bool:
    """Whether every sample counts the same; weights as numbers, or for other sizes, would contradict that."""
    if choice("objective", given.get("objective", "workers"), OBJECTIVES) == "workers":
        return False
    if not isinstance(network["weights"], str) or "samples" in network:
        raise ConfigError("objective samples makes the weights itself; leave out samples and weights of the network")
    return True


def _mapping(where: str, key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where} {key} must be a mapping of options, got {value!r}")
    return dict(value)


def _local(where: str, value: Any, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The local options; the defaults are those of SGD, not of an optimizer."""
    given = _mapping(where, "local", value)
    return given if given.get("optimizer") is not None else {**defaults, **given}


def _step(local: LocalOptions, default: Any) -> Any:
    """The step if a config has none: the profile's is for SGD, an optimizer has its own."""
    return default if local.optimizer is None else own_rate(local.optimizer)


def _labels(where: str, value: Any) -> dict[str, Any]:
    labels = _mapping(where, "labels", value)
    for name in labels:
        if name in KEYS:
            raise ConfigError(f"{where} labels: {name!r} is a key of configs; choose another name")
    return labels


def _listed(where: str, key: str, value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"{where} {key} must be a list of names, got {value!r}")
    return list(value)
