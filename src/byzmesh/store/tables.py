"""Runs as tables: a pandas DataFrame, a comparison, and files for other programs."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from byzmesh.checks import choice
from byzmesh.errors import MissingExtra, StoreError
from byzmesh.files import replacing
from byzmesh.store.keys import dump, flatten
from byzmesh.store.records import SHOWN, Comparison, RunRecord

if TYPE_CHECKING:
    import pandas

FORMATS = ("csv", "json", "parquet")


def frame(records: Sequence[RunRecord]) -> pandas.DataFrame:
    """One row per run: `SHOWN`, one column per config field (dotted path), one per metric (its last value).

    A config field whose name is taken by a fixed column becomes `config.NAME`, a metric whose name is taken becomes
    `final.NAME`. Lists are shown as JSON text, so that you can group by them.
    """
    import pandas

    columns: dict[str, list[Any]] = {name: [getattr(run, name) for run in records] for name in SHOWN}
    settings: dict[str, list[Any]] = defaultdict(lambda: [None] * len(records))
    finals: dict[str, list[float]] = defaultdict(lambda: [math.nan] * len(records))
    for row, run in enumerate(records):
        for path, value in flatten(run.config).items():
            settings[path][row] = dump(value) if isinstance(value, list | dict) else value
        for name, last in run.final.items():
            finals[name][row] = last
    for path in sorted(settings):
        columns[f"config.{path}" if path in columns else path] = settings[path]
    for name in sorted(finals):
        columns[f"final.{name}" if name in columns else name] = finals[name]
    return pandas.DataFrame(columns)


def compare(records: Sequence[RunRecord]) -> Comparison:
    """Which config fields and which code differ between the runs, and their final metrics."""
    leaves = [{**flatten(run.config), **run.code} for run in records]
    paths = sorted({path for fields in leaves for path in fields})
    # Compared as canonical text: 1, 1.0 and True are equal in Python but different in a config.
    differing = {
        path: tuple(fields.get(path) for fields in leaves)
        for path in paths
        if len({dump(fields[path]) if path in fields else None for fields in leaves}) > 1
    }
    names = sorted({name for run in records for name in run.final})
    final = {name: tuple(run.final.get(name) for run in records) for name in names}
    return Comparison(tuple(run.key for run in records), differing, final)


def choose_format(path: Path, name: str | None) -> str:
    """The export format asked for, or the one of the file's suffix.

    >>> choose_format(Path("runs.csv"), None)
    'csv'
    """
    chosen = (name or path.suffix.removeprefix(".")).lower()
    return choice(f"format of export to {path}", chosen, FORMATS)


def export(records: Sequence[RunRecord], path: Path, format: str, series: Callable[[str], dict[str, Any]]) -> None:
    """Write runs to a file; an older file of that name stays whole until the new one is complete.

    CSV and Parquet contain `frame`. JSON is a list of objects with the nested config, provenance, final values and all
    series; NaN and infinity, which JSON lacks, are the strings `nan`, `inf` and `-inf`.
    """
    try:
        with replacing(path) as file:
            if format == "json":
                _write_json(records, file, series)
            elif format == "csv":
                frame(records).to_csv(file, mode="wb", index=False)
            else:
                _write_parquet(records, file)
    except OSError as error:
        raise StoreError(
            f"export to {path} failed ({error.strerror or error}); free space or give another path"
        ) from error


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else repr(value)


def _write_json(records: Sequence[RunRecord], file: IO[bytes], series: Callable[[str], dict[str, Any]]) -> None:
    # Run by run: the series of a large store need not fit into memory.
    for row, run in enumerate(records):
        entry = {name: getattr(run, name) for name in SHOWN} | {
            "config": run.config,
            "code": run.code,
            "provenance": run.provenance,
            "final": {name: _number(value) for name, value in run.final.items()},
            "series": {name: [_number(value) for value in values.tolist()] for name, values in series(run.key).items()},
        }
        file.write((("[\n" if row == 0 else ",\n") + json.dumps(entry, allow_nan=False)).encode())
    file.write(b"\n]\n" if records else b"[]\n")


def _write_parquet(records: Sequence[RunRecord], file: IO[bytes]) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise MissingExtra("parquet", "export to Parquet") from error
    table = frame(records)
    for name in table.columns:
        # A Parquet column has one type; an option that is a number in one run and a word in another becomes JSON text.
        if len({type(value) for value in table[name].dropna()}) > 1:
            table[name] = [None if value is None else dump(value) for value in table[name].astype(object)]
    table.to_parquet(file, index=False)
