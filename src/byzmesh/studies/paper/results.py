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
from byzmesh.studies.paper.published import beside
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
DIVERGED = "diverged"


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
    """Write `results.csv`: one line per published cell (and seed).

    Ours is empty if the run did not finish; `diverged` stands for the accuracy of a run that did.
    """
    rows = [
        (
            ", ".join(filter(None, (cell.target, cell.variant))),
            *(cell.rule, cell.attack),
            f"{theirs.accuracy:.2f}",
            DIVERGED if cell.status == DIVERGED else digits(cell.accuracy, FORMS["accuracy"]),
            str(theirs.consensus_error),
            digits(cell.consensus_error, FORMS["consensus_error"]),
            digits(cell.disagreement, FORMS["disagreement"]),
            cell.rounds,
            cell.seed,
        )
        for cell in readings
        if (theirs := beside(*cell.place, cell.variant)) is not None
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
    target, _, variant = line["table"].partition(", ")
    status = line["accuracy"] if line["accuracy"] in ("", DIVERGED) else "finished"
    numbers: dict[str, Any] = {
        name: float(line[name]) if line[name] not in ("", DIVERGED) else math.nan for name in FORMS if name in line
    }
    return Reading(
        **labels_of(target, line["rule"], line["attack"], variant),
        **numbers,
        seed=int(line["seed"]),
        rounds=int(line["rounds"]),
        status=status or "not finished",
    )
