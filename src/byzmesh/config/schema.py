"""The config of one run: what a user writes, and its canonical form with every default written out.

    problem:  softmax                                    a name, or a mapping with `name` and options
    network:  {name: two-castle, k: 6, byzantine: [7, 9]}   or {file: graph.edges, ...} or {edges: [[0, 1], ...], ...}
    rule:     {name: CC, tau: 0.3}
    attack:   sign-flipping                              `none` runs the honest workers' graph alone
    f:        exact                                      or max, a number, one number per honest worker
    plugins:  [mine.py]                                  scripts or modules whose rules, attacks, ... this file names
    labels:   {case: my-first}                           names of one's own: rows and columns of tables
    rounds, evaluate_every, seed, dtype, threads, measure
    step:     {name: inverse-sqrt, a: 0.9, b: 1}         step-size schedule
    local:    {decay: 0.01, momentum: none, beta: 0.9}   local update; with steps: 5 per round, clip: 1.0,
                                                         variance: saga, or lsvrg and refresh: 0.01
    profile:  paper                                      a named set of defaults for all of the above

Two configs that mean the same run have the same canonical form: it is what a run is known by.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from byzmesh.attacks.base import attacks
from byzmesh.config.canonical import canonical_network, plain
from byzmesh.config.paths import anchor, anchor_data
from byzmesh.errors import ConfigError, UnknownOption, nearest
from byzmesh.plugins import load_plugins
from byzmesh.problems.base import Problem, problems
from byzmesh.problems.data.partition import partitions
from byzmesh.problems.neural.augment import canonical_augmentations
from byzmesh.problems.neural.modules import canonical_module
from byzmesh.registry import Registry
from byzmesh.rules.base import rules
from byzmesh.training.local import LocalOptions
from byzmesh.training.metrics import canonical_measures
from byzmesh.training.profiles import profile
from byzmesh.training.schedules import as_spec, schedules


class RunConfig(BaseModel):
    """The fields of a config and their types; `resolve` fills in what depends on others."""

    model_config = ConfigDict(extra="forbid", strict=True)

    problem: dict[str, Any]
    network: dict[str, Any]
    rule: dict[str, Any]
    attack: dict[str, Any]
    f: int | str | list[int]
    rounds: int = Field(ge=0)
    evaluate_every: int = Field(ge=1)
    step: dict[str, Any]
    local: dict[str, Any]
    seed: int
    dtype: str
    threads: int = Field(ge=1)
    measure: list[str]
    labels: dict[str, str | int | float | bool] = Field(default_factory=dict)
    plugins: list[str] = Field(default_factory=list)

    @field_validator("f")
    @classmethod
    def _bound(cls, value: Any) -> Any:
        if isinstance(value, str) and value not in ("exact", "max"):
            raise ValueError(f"must be a number, one per honest worker, 'exact' or 'max', got {value!r}")
        if isinstance(value, int) and value < 0:
            raise ValueError(f"must be at least 0, got {value}")
        return value

    @field_validator("dtype")
    @classmethod
    def _precision(cls, value: str) -> str:
        if value not in ("float32", "float64"):
            raise ValueError(f"must be float32 or float64, got {value!r}")
        return value


KEYS = (*RunConfig.model_fields, "profile")


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
    given = anchor({key: value for key, value in raw.items() if value is not None}, folder)
    plugins = load_plugins(_listed("plugins", given.get("plugins", [])))
    defaults = profile(given.pop("profile", None))
    published = bool(defaults["published"])
    chosen = given.get("problem", "softmax")
    problem = problems.canonical(chosen, problems.entry_of(chosen).published if published else {})
    problem = anchor_data(problem, folder)
    if not isinstance(given.get("problem"), Problem):  # such an object knows how it is written
        if "module" in problem:
            problem["module"] = canonical_module(problem["module"])
        if "augment" in problem:
            problem["augment"] = canonical_augmentations(problem["augment"])
    split = "iid"
    if "partition" in problem:
        problem["partition"] = partitions.canonical(problem["partition"])
        split = problem["partition"]["name"]
    if "network" not in given:
        raise ConfigError("config needs the key 'network'; give it a topology's name or a file")
    config: dict[str, Any] = plain(
        _checked(
            {
                "problem": problem,
                "network": canonical_network(given["network"]),
                "rule": _variant(rules, given.get("rule", "IOS"), published, split),
                "attack": _variant(attacks, given.get("attack", "none"), published, split),
                "f": given.get("f", "exact"),
                "rounds": given.get("rounds", defaults["rounds"]),
                "evaluate_every": given.get("evaluate_every", defaults["evaluate_every"]),
                "step": schedules.canonical(as_spec(given.get("step", defaults["step"]))),
                "local": LocalOptions.of({**defaults["local"], **_mapping("local", given.get("local", {}))}).written(),
                "seed": given.get("seed", 0),
                "dtype": given.get("dtype", defaults["dtype"]),
                "threads": given.get("threads", 1),
                "measure": canonical_measures(_listed("measure", given.get("measure", []))),
                **({"labels": _labels(given["labels"])} if given.get("labels") else {}),
                **({"plugins": plugins} if plugins else {}),
            }
        )
    )
    return config


def _checked(config: dict[str, Any]) -> dict[str, Any]:
    try:
        return RunConfig.model_validate(config).model_dump(exclude_unset=True)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if not str(part).startswith(("list[", "int", "str")))
        reason = first["msg"].removeprefix("Value error, ")
        reason = reason[0].lower() + reason[1:]
        shown = "" if "got" in reason else f", got {first['input']!r}"
        raise ConfigError(f"config {place}: {reason}{shown}") from None


def _variant(registry: Registry[Any], spec: Any, published: bool, split: str) -> dict[str, Any]:
    known = published and registry.is_registered(spec)
    defaults = registry.entry_of(spec).published_options(split) if known else {}
    result = registry.canonical(spec, defaults)
    if "inner" in result:
        result["inner"] = _variant(registry, result["inner"], published, split)
    return result


def _mapping(key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"config {key} must be a mapping of options, got {value!r}")
    return dict(value)


def _labels(value: Any) -> dict[str, Any]:
    labels = _mapping("labels", value)
    for name in labels:
        if name in KEYS:
            raise ConfigError(f"config labels: {name!r} is a key of configs; choose another name")
    return labels


def _listed(key: str, value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"config {key} must be a list of names, got {value!r}")
    return list(value)
