"""File names in a config: relative to the folder that the config is in, wherever byzmesh is started.

    network                   a graph file, alone or as `file`
    problem.dataset           a name that ends in .npz or .csv
    problem.data_dir          a folder
    plugins                   scripts; or modules, if their file is there
    problem.module            a factory in a file: models.py:make, or models:make if models.py is there

They become absolute: a stored run finds its files again from any folder, and is known by them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from byzmesh.networks.graph import as_mapping
from byzmesh.plugins import full_name

DATA_ENDINGS = (".npz", ".csv")


def anchor(config: Mapping[str, Any], folder: str | Path) -> dict[str, Any]:
    """The config with its file names taken from `folder`; absolute ones, and all other values, stay as they are.

    >>> anchor({"problem": {"name": "softmax", "dataset": "mine.csv"}, "network": "office.edges"}, "/lab")
    {'problem': {'name': 'softmax', 'dataset': '/lab/mine.csv'}, 'network': {'file': '/lab/office.edges'}}
    """
    base = Path(folder).absolute()
    result = dict(config)
    if isinstance(config.get("network"), str | Mapping):
        spec = dict(config["network"]) if isinstance(config["network"], Mapping) else as_mapping(config["network"])
        if isinstance(spec.get("file"), str):
            result["network"] = {**spec, "file": _absolute(spec["file"], base)}
    if isinstance(config.get("problem"), Mapping):
        result["problem"] = _anchor_module(anchor_data(config["problem"], base), base)
    plugins = config.get("plugins")
    if isinstance(plugins, str | list | tuple):
        result["plugins"] = [full_name(name, base) for name in ([plugins] if isinstance(plugins, str) else plugins)]
    return result


def anchor_data(given: Mapping[str, Any], folder: str | Path) -> dict[str, Any]:
    """The same for the data of a problem."""
    problem, base = dict(given), Path(folder).absolute()
    if isinstance(problem.get("data_dir"), str):
        problem["data_dir"] = _absolute(problem["data_dir"], base)  # and the data set is relative to that
    else:
        for option in ("dataset", "data"):
            if isinstance(problem.get(option), str) and problem[option].endswith(DATA_ENDINGS):
                problem[option] = _absolute(problem[option], base)
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
