"""The results of a study's runs, cell by cell, as its tables show them.

accuracy            percent, mean over the honest workers and the last evaluations
consensus_error     CE, the published column: norm of the vector of per-coordinate variances
disagreement        H of the text: the sum of the same variances
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byzmesh.config.cell import Cell
from byzmesh.reports.aggregation import value_of
from byzmesh.reports.writing import write_csv
from byzmesh.store import RunRecord, Store

COLUMNS = (
    *("target", "variant", "rule", "attack"),
    *("accuracy", "consensus_error", "disagreement", "loss", "rounds", "seed", "status"),
)
FORMS = {"accuracy": ".4f", "consensus_error": ".4e", "disagreement": ".4e", "loss": ".6g"}
"""Metrics of a reading, and their digits in a file."""
NOT_THERE = "not run"
AS_PUBLISHED = 10
"""Number of evaluations that a published cell averages."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The result of a cell; numbers are NaN unless the run finished.

    target, rule, attack, variant  the labels of a study's cell, see `labels_of`
    """

    target: str
    rule: str
    attack: str
    variant: str = ""
    seed: int
    rounds: int
    accuracy: float = math.nan
    consensus_error: float = math.nan
    disagreement: float = math.nan
    loss: float = math.nan
    status: str = "finished"
    failure: str = ""
    failure_kind: str = ""
    key: str = ""

    @property
    def place(self) -> tuple[str, str, str]:
        """(table, rule, attack): the key of the published cell."""
        return self.target, self.rule, self.attack

    @property
    def infeasible(self) -> bool:
        """Whether the rule refused the bound f: a result, not a failure."""
        return self.failure_kind == "infeasible"


def labels_of(target: str, rule: str, attack: str, variant: str = "") -> dict[str, Any]:
    """The labels of a study's cell.

    target, rule, attack  as in the published tables
    variant               what else distinguishes cells of a target (number of liars, f, worked example), or empty
    """
    return {"target": target, "rule": rule, "attack": attack, "variant": variant}


def collect(store: Store, cells: Iterable[Cell], last: int | None = AS_PUBLISHED) -> list[Reading]:
    """The readings of the cells, in their order; a run that is not in the store is `not run`.

    last  evaluations that a number is the mean of; None: as tables have it (`training.final.last_evaluations`)
    """
    runs = {run.key: run for run in store.list()}
    found = []
    for cell in cells:
        run = runs.get(cell.key)
        if run is None:
            seed = int(cell.config["seed"])
            found.append(Reading(**cell.labels, seed=seed, rounds=0, status=NOT_THERE, key=cell.key))
        else:
            found.append(reading_of(store, run, cell.labels, last))
    return found


def reading_of(store: Store, run: RunRecord, labels: Mapping[str, Any], last: int | None = AS_PUBLISHED) -> Reading:
    """The reading of a stored run."""
    numbers: dict[str, Any] = {}
    if run.status == "finished":
        series = store.series(run.key)
        numbers = {name: value_of(series, name, last) for name in FORMS if name in series}
    return Reading(
        **labels,
        **numbers,
        seed=int(run.config["seed"]),
        rounds=int(run.config["rounds"]),
        status=run.status,
        failure=run.failure or "",
        failure_kind=run.failure_kind or "",
        key=run.key,
    )


def write_readings(path: Path, readings: Iterable[Reading]) -> Path:
    """Write `COLUMNS` of the readings as CSV."""
    return write_csv(path, COLUMNS, [[_shown(reading, name) for name in COLUMNS] for reading in readings])


def _shown(reading: Reading, name: str) -> Any:
    value = getattr(reading, name)
    return digits(value, FORMS[name]) if name in FORMS else value


def digits(value: float, form: str) -> str:
    """A number for a file; empty for NaN.

    >>> digits(91.7, ".4f"), digits(float("nan"), ".4f")
    ('91.7000', '')
    """
    return "" if math.isnan(value) else format(value, form)
