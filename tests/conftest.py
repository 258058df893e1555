"""Fixtures that several rooms share: a small data set, grids over it, and cleaning up processes."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, settings

from byzmesh.config.grid import read_grid
from byzmesh.problems.data.datasets import dataset
from byzmesh.store import open_store
from byzmesh.sweeps import processes
from byzmesh.sweeps.sweep import sweep
from tests.processes import STARTED, fork_server

GridFile = Callable[..., Path]
"""Writes a grid: name, rounds and the parts of a grid as keywords."""


# no test depends on a clock, not on how long an example takes either, nor on luck: the examples are always the same
settings.register_profile(
    "no clock, no luck", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("no clock, no luck")

LONG = (
    "attacks/test_adaptive",
    "attacks/test_contract",
    "attacks/test_oracles",
    "networks/test_links",
    "peers/test_epoch_schedules",
    "peers/test_memory",
    "peers/test_plan",
    "peers/test_schedules",
    "peers/test_timing",
    "peers/test_wire.py::test_fuzzed",
    "problems/linear/test_gradients",
    "rules/gram/test_blocks",
    "rules/ranks/test_ranks",
    "rules/test_against_oracles",
    "rules/test_contract",
    "rules/test_reprieve",
    "store/test_keys",
    "studies/test_everything",
    "studies/test_soundness",
    "test_bit_for_bit",
    "theory/search/test_agreement.py::test_the_search_comes_near",
    "theory/search/test_climb",
    "theory/test_design.py::test_scaling",
    "theory/test_theorems_hold",
)
"""What takes long must not come last, when the other worker has nothing left to do."""

COMPILING = (
    "attacks/test_adaptive",
    "problems/linear/test_gradients",
    "rules/gram/test_blocks",
    "rules/ranks/test_ranks",
    "rules/test_against_oracles",
    "simulation/test_whole",
)
"""Files whose tests need the same kernels: one worker takes each whole, or the other would wait while it compiles."""


def pytest_collection() -> None:
    """What is imported stays: to look for garbage in it takes five seconds."""
    gc.disable()


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        name = item.nodeid.removeprefix("tests/").partition(".py")[0]
        if name in COMPILING:
            item.add_marker(pytest.mark.xdist_group(name))
    items.sort(key=lambda item: not item.nodeid.removeprefix("tests/").startswith(LONG))


def pytest_collection_finish() -> None:
    """The collector need not look at a million objects, of all that was imported, again and again."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    """A test that fails half-way must not leave its sweeps running."""
    yield
    while STARTED:
        process = STARTED.pop()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture(autouse=True, scope="session")
def _workers_are_forked_from_a_warm_process() -> Iterator[None]:
    """Whoever forks first starts the process that all are forked from: a sweep of a test must not start a cold one."""
    process = processes._process

    def warm(*arguments: Any) -> Any:
        fork_server()
        return process(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "_process", warm)
        yield


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of 400 samples of 20 features in 4 classes."""
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 4, 400)
    features = draw.standard_normal((4, 20))[labels] + draw.standard_normal((400, 20))
    path = tmp_path_factory.mktemp("data") / "samples.npz"
    np.savez(path, train_x=features[:300], train_y=labels[:300], test_x=features[300:], test_y=labels[300:])
    return path


@pytest.fixture(scope="session")
def few_digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first samples of MNIST, for tests that measure the gradient of the whole training set again and again."""
    digits = dataset("mnist")
    path = tmp_path_factory.mktemp("digits") / "few.npz"
    np.savez(path, **{name: getattr(digits, name)[:1000] for name in ("train_x", "train_y", "test_x", "test_y")})
    return path


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory, samples: Path) -> Path:
    """Folder of a store with finished, diverged, failed and planned runs, their grid and their event files."""
    folder = tmp_path_factory.mktemp("filled")
    grid = {
        "base": {
            "problem": {"name": "softmax", "dataset": str(samples)},
            "network": "paper/two-castle",
            "rounds": 20,
            "evaluate_every": 5,
        },
        "cases": {
            "good": {"rule": "ios", "attack": "alie"},
            "wild": {"rule": "mean", "step": 1e30},
            "never": {"rule": "krum", "f": 9},
        },
        "axes": {"seed": [0, 1]},
    }
    (folder / "grid.yaml").write_text(json.dumps(grid))
    points = read_grid(folder / "grid.yaml")
    sweep([point.config for point in points[:5]], folder / "runs.db", workers=1, tensorboard=folder / "events")
    with open_store(folder / "runs.db") as store:
        store.plan(points[5].config, points[5].code)
    return folder


@pytest.fixture
def grid_file(tmp_path: Path, samples: Path) -> GridFile:
    """Writes a grid over the small data set and returns its path."""

    def write(name: str = "grid.yaml", rounds: int = 50, **parts: Any) -> Path:
        base = {
            "problem": {"name": "softmax", "dataset": str(samples), "batch": 8},
            "network": "paper/two-castle",
            "attack": "gaussian",
            "rounds": rounds,
            "evaluate_every": max(rounds // 10, 1),
            **parts.pop("base", {}),
        }
        path = tmp_path / name
        path.write_text(yaml.safe_dump({"base": base, **parts}, sort_keys=False))
        return path

    return write
