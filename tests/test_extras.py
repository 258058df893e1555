"""Every optional dependency that is missing is said in one line that names the extra to install."""

from __future__ import annotations

import importlib
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import byzmesh as bm
from byzmesh.theory.design.schemes import fastest_mixing

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def sweep_with(**option: Any) -> Callable[[Path], object]:
    from byzmesh.sweeps.sweep import sweep

    return lambda folder: sweep([], folder / "runs.db", **option)


def on_cluster(folder: Path) -> object:
    from byzmesh.config.grid import read_grid
    from byzmesh.sweeps.sweep import sweep

    grid = folder / "grid.yaml"
    grid.write_text("base: {problem: quadratic, network: {name: ring, n: 5}, rounds: 1}\naxes: {seed: [0]}\n")
    return sweep([cell.config for cell in read_grid(grid)], folder / "runs.db", dask="tcp://127.0.0.1:1")


def to_parquet(folder: Path) -> None:
    from byzmesh.store import open_store
    from byzmesh.store.tables import export

    with open_store(folder / "runs.db") as store:
        export(store.list(), folder / "runs.parquet", "parquet", store.series)


def operators_key(folder: Path) -> object:
    from byzmesh.peers.signing import load_operator

    (folder / "key").write_bytes(bytes(32))
    return load_operator(folder / "key")


def fresh_import(name: str) -> Callable[[Path], object]:
    def call(folder: Path) -> object:
        kept = sys.modules.pop(name, None)
        try:
            return importlib.import_module(name)
        finally:
            if kept is not None:
                sys.modules[name] = kept

    return call


NEEDS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "torch": ("torch", lambda folder: bm.simulate(problem="torch", network={"name": "ring", "n": 5}, rounds=1)),
    "dask": ("distributed", on_cluster),
    "peers": ("cryptography.hazmat.primitives", operators_key),
    "parquet": ("pyarrow", to_parquet),
    "tensorboard": ("tensorboard.summary", lambda folder: sweep_with(tensorboard=folder / "events")(folder)),
    "mlflow": ("mlflow", lambda folder: sweep_with(mlflow=folder / "mlruns")(folder)),
    "wandb": ("wandb", lambda folder: sweep_with(wandb=folder / "wandb")(folder)),
    "design": ("cvxpy", lambda folder: fastest_mixing(bm.network("ring", n=5).adjacency)),
    "flower": ("flwr.app", fresh_import("byzmesh.integrations.flower")),
    "nvflare": ("nvflare.apis.fl_constant", fresh_import("byzmesh.integrations.nvflare")),
    "byzfl": ("byzfl", lambda folder: importlib.import_module("byzmesh.integrations.byzfl").run_benchmark),
}
"""extra -> a module of it, and something that needs it."""


TOOLS = {"notebook", "docs", "dev"}
"""Extras that no module of ours imports: people run them."""


def test_every_extra_is_here() -> None:
    assert set(NEEDS) == set(PROJECT["optional-dependencies"]) - TOOLS


@pytest.mark.parametrize("extra", NEEDS)
def test_a_missing_extra_is_one_line(extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, call = NEEDS[extra]
    loaded = [name for name in sys.modules if name.startswith(f"{module}.")]  # by tests before this one
    for name in [module, *loaded]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises((ImportError, AttributeError)) as told:
        call(tmp_path)
    assert f"pip install 'byzmesh[{extra}]'" in str(told.value)
    assert "\n" not in str(told.value)
