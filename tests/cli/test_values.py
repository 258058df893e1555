"""A run has one value: everything that shows it averages the same evaluations, never the start."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from byzmesh.config.cell import make_cell
from byzmesh.config.schema import resolve
from byzmesh.store import open_store
from byzmesh.studies.readings import collect, labels_of
from tests.cli.commands import run


@pytest.mark.parametrize(
    ("rounds", "every", "value", "asked"),
    [
        (20, 1, "80.00", "76.00"),  # rounds 19 and 20; asked for ten: 11 to 20
        (100, 50, "80.50", "55.25"),  # the end only; asked for ten: 50 and 100
    ],
)
def test_one_definition_everywhere(tmp_path: Path, rounds: int, every: int, value: str, asked: str) -> None:
    at = np.arange(0, rounds + 1, every)
    accuracy = np.array([0.1, 0.3, 0.805]) if every == 50 else 0.605 + 0.01 * at
    config = resolve({"network": "paper/two-castle", "rounds": rounds, "evaluate_every": every})
    path = tmp_path / "runs.db"
    with open_store(path) as store:
        key = store.plan(config)
        store.finish(key, "finished", {"round": at, "accuracy": accuracy, "loss": 1.0 - accuracy}, rounds=rounds)
        cell = make_cell(config, labels_of("two-castle", "IOS", "none"))
        (default,), (published,) = collect(store, [cell], None), collect(store, [cell])
    where = ("--store", path)
    (row,) = csv.DictReader(run("table", *where, "--format", "csv").stdout.splitlines())
    assert f"{float(row['mean']):.2f}" == f"{default.accuracy:.2f}" == value
    assert value in run("runs", "list", *where).stdout.split()
    assert value in run("runs", "compare", key, key, *where).stdout.split()
    assert value in run("table", *where).stdout.split()
    (row,) = csv.DictReader(run("table", *where, "--last", 10, "--format", "csv").stdout.splitlines())
    assert f"{float(row['mean']):.2f}" == f"{published.accuracy:.2f}" == asked
