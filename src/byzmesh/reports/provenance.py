"""Settings and provenance of every run of a report: common settings once, differing ones per run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from byzmesh.store import RunRecord
from byzmesh.store.keys import dump, flatten


@dataclass(frozen=True)
class Runs:
    """The runs behind a report.

    common   settings that all runs have in common, by dotted path
    origins  distinct provenances: versions, revision, platform (without the machine's name)
    rows     one per run: key, what it is, status, rounds, seconds, number of its origin, settings that are its own
    """

    common: Mapping[str, str]
    origins: tuple[Mapping[str, str], ...]
    rows: tuple[tuple[str, str, str, int, float, int, str], ...]


def describe(runs: Sequence[RunRecord], names: Mapping[str, str]) -> Runs:
    """Describe the runs; `names` gives a title by key."""
    leaves = [{path: dump(value) for path, value in flatten(run.config).items()} for run in runs]
    common = dict(leaves[0]) if leaves else {}
    for fields in leaves:
        common = {path: value for path, value in common.items() if fields.get(path) == value}
    origins: dict[str, int] = {}
    rows = []
    for run, fields in zip(runs, leaves):
        origin = json.dumps(_origin(run.provenance))
        own = "; ".join(f"{path} = {value}" for path, value in fields.items() if path not in common)
        text = run.status + (f": {run.failure}" if run.failure else "")
        number = origins.setdefault(origin, len(origins) + 1)
        rows.append((run.key, names.get(run.key, ""), text, run.rounds or 0, run.seconds or 0.0, number, own))
    return Runs(common, tuple(json.loads(origin) for origin in origins), tuple(rows))


def _origin(provenance: Mapping[str, Any]) -> dict[str, str]:
    """Flat and without the machine's name, because reports are shared."""
    if not provenance:
        return {"state": "not run yet"}
    packages = ", ".join(f"{name} {version}" for name, version in provenance.get("packages", {}).items())
    names = ("version", "revision", "python", "platform", "processor")
    return {
        **{f"byzmesh {name}" if name == "version" else name: str(provenance.get(name)) for name in names},
        "with": packages,
    }
