"""File names in a config: relative to the config's folder, wherever byzmesh is started.

    network                   a graph file, alone or as `file`
    process                   the `file` of a schedule
    problem.dataset           a name that ends in .npz or .csv; the file of a text, and its tokenizer's
    problem.data_dir          a folder
    problem.base              a safetensors file, alone or as `file`
    plugins                   scripts; or modules, if their file is there
    problem.module            a factory in a file: models.py:make, or models:make if models.py is there
    local.optimizer           likewise, in the config of a run; in a network file only package.module:function

They become absolute, so that a stored run finds its files from any folder; they are part of its identity. In a network
file they stay as written, because other machines get that file too: there they become absolute when they are used.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from byzmesh.networks.specs import as_mapping
from byzmesh.plugins import full_name

DATA_ENDINGS = (".npz", ".csv")
_DATA = ("dataset", "data_dir")
_INSIDE = {"module": "name", "dataset": "text", "base": "file"}
"""Options that are mappings -> their key that names a file."""


def anchor(config: Mapping[str, Any], folder: str | Path) -> dict[str, Any]:
    """The config with its relative file names resolved against `folder`; all other values are unchanged.

    >>> anchor({"problem": {"name": "softmax", "dataset": "mine.csv"}, "network": "office.edges"}, "/lab")
    {'problem': {'name': 'softmax', 'dataset': '/lab/mine.csv'}, 'network': {'file': '/lab/office.edges'}}
    """
    base = Path(folder).absolute()
    result = dict(config)
    if isinstance(config.get("network"), str | Mapping):
        spec = dict(config["network"]) if isinstance(config["network"], Mapping) else as_mapping(config["network"])
        if isinstance(spec.get("file"), str):
            result["network"] = {**spec, "file": _absolute(spec["file"], base)}
    if isinstance(config.get("process"), Mapping | list | tuple):
        result["process"] = _anchor_process(config["process"], base)
    if isinstance(config.get("problem"), Mapping):
        result["problem"] = anchor_problem(config["problem"], base)
    plugins = config.get("plugins")
    if isinstance(plugins, str | list | tuple):
        result["plugins"] = [full_name(name, base) for name in ([plugins] if isinstance(plugins, str) else plugins)]
    return result


def anchor_optimizer(config: Mapping[str, Any], folder: str | Path) -> dict[str, Any]:
    """The config of a run with the file of its optimizer's factory resolved against `folder`.

    >>> anchor_optimizer({"local": {"optimizer": "mine.py:adamw", "steps": 5}}, "/lab")
    {'local': {'optimizer': {'name': '/lab/mine.py:adamw'}, 'steps': 5}}
    """
    local = config.get("local")
    optimizer = local.get("optimizer") if isinstance(local, Mapping) else None
    spec = {"name": optimizer} if isinstance(optimizer, str) else optimizer
    if not isinstance(local, Mapping) or not isinstance(spec, Mapping) or not isinstance(spec.get("name"), str):
        return dict(config)
    named = {**spec, "name": _anchor_factory(spec["name"], Path(folder).absolute())}
    return {**config, "local": {**local, "optimizer": named}}


def _anchor_process(given: Any, base: Path) -> Any:
    if isinstance(given, Mapping):
        return {**given, "file": _absolute(given["file"], base)} if isinstance(given.get("file"), str) else dict(given)
    return [_anchor_process(item, base) for item in given] if isinstance(given, list | tuple) else given


def anchor_problem(given: Mapping[str, Any], folder: str | Path) -> dict[str, Any]:
    """The same for a problem with its options.

    >>> anchor_problem({"name": "torch", "module": "models.py:make"}, "/lab")
    {'name': 'torch', 'module': '/lab/models.py:make'}
    """
    return _anchor_module(anchor_data(given, folder), Path(folder).absolute())


def problem_seen_from(folder: str | Path, problem: Mapping[str, Any]) -> dict[str, Any]:
    """The problem with files in or below a folder named by their relative path; others stay absolute.

    >>> problem_seen_from("/lab", {"name": "softmax", "dataset": "/lab/data/mine.csv", "data_dir": "/data"})
    {'name': 'softmax', 'dataset': 'data/mine.csv', 'data_dir': '/data'}
    """
    base = Path(folder).absolute()

    def seen(name: str) -> str:
        path = Path(name)
        return str(path.relative_to(base)) if path.is_absolute() and path.is_relative_to(base) else name

    result: dict[str, Any] = {
        option: seen(value) if option in _DATA and isinstance(value, str) else value
        for option, value in problem.items()
    }
    for option, key in _INSIDE.items():
        inner = result.get(option)
        if isinstance(inner, Mapping) and isinstance(inner.get(key), str):
            result[option] = {**inner, key: seen(inner[key])}
    return result


def problem_as_written(problem: Mapping[str, Any], written: Any) -> dict[str, Any]:
    """A canonical problem with its file names as written, before `anchor_problem`.

    >>> problem_as_written({"name": "softmax", "dataset": "/lab/mine.csv", "batch": 32}, {"dataset": "mine.csv"})
    {'name': 'softmax', 'dataset': 'mine.csv', 'batch': 32}
    """
    if not isinstance(written, Mapping):
        return dict(problem)
    result = {**problem, **{option: written[option] for option in _DATA if option in written and option in problem}}
    module = written.get("module")
    name = module.get("name") if isinstance(module, Mapping) else module
    if isinstance(name, str) and ":" in name:  # a factory in a file
        result["module"] = {**problem["module"], "name": name}
    base = written.get("base")
    if base is not None:
        result["base"] = {**problem["base"], "file": base["file"] if isinstance(base, Mapping) else base}
    return result


def anchor_data(given: Mapping[str, Any], folder: str | Path) -> dict[str, Any]:
    """The same for the data files of a problem."""
    problem, base = dict(given), Path(folder).absolute()
    if isinstance(problem.get("data_dir"), str):
        problem["data_dir"] = _absolute(problem["data_dir"], base)  # and the data set is relative to that
    elif isinstance(problem.get("dataset"), str) and problem["dataset"].endswith(DATA_ENDINGS):
        problem["dataset"] = _absolute(problem["dataset"], base)
    elif isinstance(problem.get("dataset"), Mapping) and isinstance(problem["dataset"].get("text"), str):
        text: Mapping[str, Any] = problem["dataset"]
        named = {
            option: _anchor_factory(text[option], base)
            for option in ("tokenizer",)
            if isinstance(text.get(option), str)
        }
        problem["dataset"] = {**text, **named, "text": _absolute(text["text"], base)}
    weights: Any = {"file": problem["base"]} if isinstance(problem.get("base"), str) else problem.get("base")
    if isinstance(weights, Mapping) and isinstance(weights.get("file"), str):
        problem["base"] = {**weights, "file": _absolute(weights["file"], base)}
    return problem


def _anchor_module(problem: dict[str, Any], base: Path) -> dict[str, Any]:
    module = problem.get("module")
    if isinstance(module, str):
        return {**problem, "module": _anchor_factory(module, base)}
    if isinstance(module, Mapping) and isinstance(module.get("name"), str):
        return {**problem, "module": {**module, "name": _anchor_factory(module["name"], base)}}
    return problem


def _anchor_factory(name: str, base: Path) -> str:
    where, colon, function = name.rpartition(":")
    if not colon:
        return name
    if where.endswith(".py"):
        return f"{_absolute(where, base)}:{function}"
    file = base.joinpath(*where.split(".")).with_suffix(".py")
    return f"{file}:{function}" if file.is_file() else name


def _absolute(name: str, base: Path) -> str:
    return os.path.abspath(base / Path(name).expanduser())
