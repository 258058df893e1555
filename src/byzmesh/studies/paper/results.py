"""What the runs of a reproduction gave, cell by cell, and the file `results.csv` with the published numbers beside it.

accuracy            percent, mean over the honest workers and the last 10 evaluations
consensus_error     CE, the published column: norm of the vector of per-coordinate variances
disagreement        H of the text: the sum of the same variances
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from byzmesh.errors import DataError
from byzmesh.reports.aggregation import value_of
from byzmesh.reports.writing import write_csv
from byzmesh.store import RunRecord, Store, config_key
from byzmesh.studies.paper.published import published

COLUMNS = (
    "table",
    "rule",
    "attack",
    "published_accuracy",
    "accuracy",
    "published_consensus_error",
    "consensus_error",
    "disagreement",
    "rounds",
    "seed",
)
MORE_COLUMNS = ("target", "variant", "rule", "attack", "accuracy", "consensus_error", "disagreement", "loss", "rounds")
NOT_THERE = "not run"
AS_PUBLISHED = 10
"""Evaluations that a published cell is the mean of."""


@dataclass(frozen=True)
class Entry:
    """Where a run belongs: target (`table-3`), rule and attack as the paper spells them, key in the store, variant."""

    target: str
    rule: str
    attack: str
    key: str
    variant: str = ""
    seed: int = 0


@dataclass(frozen=True)
class Reading:
    """A cell as it came out; numbers are NaN unless the run finished."""

    target: str
    rule: str
    attack: str
    seed: int
    rounds: int
    accuracy: float = math.nan
    consensus_error: float = math.nan
    disagreement: float = math.nan
    loss: float = math.nan
    variant: str = ""
    status: str = "finished"
    failure: str = ""
    failure_kind: str = ""
    key: str = ""

    @property
    def place(self) -> tuple[str, str, str]:
        """(table, rule, attack), as the published cells are known by."""
        return self.target, self.rule, self.attack

    @property
    def infeasible(self) -> bool:
        """Whether the rule refused the bound f: a result, not a mishap."""
        return self.failure_kind == "infeasible"


def collect(store: Store, entries: Iterable[Entry], last: int | None = AS_PUBLISHED) -> list[Reading]:
    """The readings of the entries, in their order; a run that the store does not hold is `not run`.

    last  evaluations that a number is the mean of; None: as tables have it (`training.final.last_evaluations`)
    """
    held = {run.key: run for run in store.list()}
    return [_reading(store, entry, held.get(entry.key), last) for entry in entries]


def other_seeds(store: Store, readings: Iterable[Reading]) -> list[Reading]:
    """Readings of finished runs that the store holds beside these, from which they differ in nothing but the seed."""
    held = {run.key: run for run in store.list()}
    asked = [reading for reading in readings if reading.key in held]
    beside: dict[str, list[RunRecord]] = {}
    for key in held.keys() - {reading.key for reading in asked}:
        if held[key].status == "finished":
            beside.setdefault(_seedless(held[key]), []).append(held[key])
    found = {}
    for reading in asked:
        entry = Entry(reading.target, reading.rule, reading.attack, reading.key, reading.variant)
        for run in sorted(beside.get(_seedless(held[reading.key]), ()), key=lambda run: int(run.config["seed"])):
            found[reading.place, run.key] = _reading(store, replace(entry, key=run.key), run)
    return list(found.values())


def _seedless(run: RunRecord) -> str:
    return config_key({**run.config, "seed": 0})


def _reading(store: Store, entry: Entry, run: RunRecord | None, last: int | None = AS_PUBLISHED) -> Reading:
    known: dict[str, Any] = {"variant": entry.variant, "key": entry.key}
    if run is None:
        return Reading(entry.target, entry.rule, entry.attack, entry.seed, 0, status=NOT_THERE, **known)
    known |= {"status": run.status, "failure": run.failure or "", "failure_kind": run.failure_kind or ""}
    if run.status == "finished":
        series = store.series(run.key)
        names = ("accuracy", "consensus_error", "disagreement", "loss")
        known |= {name: value_of(series, name, last) for name in names if name in series}
    seed, rounds = int(run.config["seed"]), int(run.config["rounds"])
    return Reading(entry.target, entry.rule, entry.attack, seed, rounds, **known)


def write_results(path: Path, readings: Iterable[Reading]) -> Path:
    """`results.csv`: one line per published cell (and seed); ours is empty where the run did not finish."""
    theirs = published()
    rows = [
        (
            *cell.place,
            f"{theirs[cell.place].accuracy:.2f}",
            _digits(cell.accuracy, ".4f"),
            str(theirs[cell.place].consensus_error),
            _digits(cell.consensus_error, ".4e"),
            _digits(cell.disagreement, ".4e"),
            cell.rounds,
            cell.seed,
        )
        for cell in readings
        if cell.place in theirs
    ]
    return write_csv(path, COLUMNS, rows)


def read_results(path: Path) -> list[Reading]:
    """The readings of a `results.csv`; a cell without a number counts as not finished."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise DataError(f"{path} is not a results file: its columns must be {','.join(COLUMNS)}")
        return [_from_line(line) for line in reader]


def _from_line(line: Mapping[str, str]) -> Reading:
    names = ("accuracy", "consensus_error", "disagreement")
    known: dict[str, Any] = {name: float(line[name]) if line[name] else math.nan for name in names}
    known["status"] = "finished" if line["accuracy"] else "not finished"
    return Reading(line["table"], line["rule"], line["attack"], int(line["seed"]), int(line["rounds"]), **known)


def write_readings(path: Path, readings: Iterable[Reading]) -> Path:
    """The same for cells without a published number: `MORE_COLUMNS`, seed, status."""
    rows = []
    for cell in readings:
        numbers = (_digits(cell.accuracy, ".4f"), _digits(cell.consensus_error, ".4e"))
        more = (_digits(cell.disagreement, ".4e"), _digits(cell.loss, ".6g"), cell.rounds, cell.seed, cell.status)
        rows.append((cell.target, cell.variant, cell.rule, cell.attack, *numbers, *more))
    return write_csv(path, (*MORE_COLUMNS, "seed", "status"), rows)


def _digits(value: float, form: str) -> str:
    return "" if math.isnan(value) else format(value, form)
