"""The file `results.csv`: the published numbers with ours beside them."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from byzmesh.errors import DataError
from byzmesh.reports.writing import write_csv
from byzmesh.store import RunRecord, Store, config_key
from byzmesh.studies.paper.published import published
from byzmesh.studies.readings import FORMS, Reading, digits, labels_of, reading_of

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


def other_seeds(store: Store, readings: Iterable[Reading]) -> list[Reading]:
    """Readings of other finished runs in the store that differ from these only in the seed."""
    runs = {run.key: run for run in store.list()}
    asked = [reading for reading in readings if reading.key in runs]
    beside: dict[str, list[RunRecord]] = {}
    for key in runs.keys() - {reading.key for reading in asked}:
        if runs[key].status == "finished":
            beside.setdefault(_seedless(runs[key]), []).append(runs[key])
    known = {}
    for reading in asked:
        labels = labels_of(*reading.place, reading.variant)
        for run in sorted(beside.get(_seedless(runs[reading.key]), ()), key=lambda run: int(run.config["seed"])):
            known[reading.place, run.key] = reading_of(store, run, labels)
    return list(known.values())


def _seedless(run: RunRecord) -> str:
    return config_key({**run.config, "seed": 0}, run.code)


def write_results(path: Path, readings: Iterable[Reading]) -> Path:
    """Write `results.csv`: one line per published cell (and seed); ours is empty if the run did not finish."""
    theirs = published()
    rows = [
        (
            *cell.place,
            f"{theirs[cell.place].accuracy:.2f}",
            digits(cell.accuracy, FORMS["accuracy"]),
            str(theirs[cell.place].consensus_error),
            digits(cell.consensus_error, FORMS["consensus_error"]),
            digits(cell.disagreement, FORMS["disagreement"]),
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
    numbers: dict[str, Any] = {name: float(line[name]) if line[name] else math.nan for name in FORMS if name in line}
    return Reading(
        **labels_of(line["table"], line["rule"], line["attack"]),
        **numbers,
        seed=int(line["seed"]),
        rounds=int(line["rounds"]),
        status="finished" if line["accuracy"] else "not finished",
    )
