"""The study: many cases certified and attacked, counted and written down.

It runs in parts of `PART` cases, each kept in FOLDER/parts until the last is there, so that a study that was stopped
continues where it was. REVISION names the code; parts of another revision are computed again.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from typing import Any

from byzmesh.files import folder as make_folder
from byzmesh.files import write
from byzmesh.studies.soundness.attack import Broken, challenge
from byzmesh.studies.soundness.cases import declaring, draw_case

PART = 250
BUDGET = 400
LEVELS = ("bounded", "fair", "agrees", "connected")
STATUSES = ("proved", "refuted", "unknown")


def study(count: int, budget: int, first: int = 0) -> dict[str, Any]:
    """Challenge many cases; counts by rule, level and status, and what broke."""
    counts: Counter[tuple[str, str, str]] = Counter()
    broken: list[str] = []
    for seed in range(first, first + count):
        case = draw_case(seed)
        try:
            for level, status in challenge(case, budget).items():
                counts[case.rule.name, level, status] += 1
        except Broken as error:
            broken.append(str(error))
    table = {
        rule: {level: {status: counts[rule, level, status] for status in STATUSES} for level in LEVELS}
        for rule in declaring()
    }
    return {"cases": count, "first": first, "budget": budget, "broken": broken, "counts": table}


def merged(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The parts of one study together."""
    table = parts[0]["counts"]
    for part in parts[1:]:
        for rule, levels in part["counts"].items():
            for level, counts in levels.items():
                for status, number in counts.items():
                    table[rule][level][status] += number
    return {
        "cases": sum(part["cases"] for part in parts),
        "first": parts[0]["first"],
        "budget": parts[0]["budget"],
        "revision": parts[0]["revision"],
        "broken": [text for part in parts for text in part["broken"]],
        "counts": table,
    }


def main(arguments: list[str]) -> int:
    """Run the study and write counts.json and README.md to a folder; 1 if anything broke."""
    count, target, revision = int(arguments[0]), make_folder(arguments[1]), arguments[2]
    kept = make_folder(target / "parts")
    parts = []
    for first in range(0, count, PART):
        file = kept / f"{first:06d}.json"
        part = json.loads(file.read_text()) if file.exists() else {}
        if (part.get("revision"), part.get("budget")) != (revision, BUDGET):
            part = {"revision": revision, **study(min(PART, count - first), BUDGET, first)}
            write(file, json.dumps(part))
        parts.append(part)
    told = merged(parts)
    write(target / "counts.json", json.dumps(told, indent=1) + "\n")
    write(target / "README.md", report(told))
    shutil.rmtree(kept)
    return 1 if told["broken"] else 0


def report(told: dict[str, Any]) -> str:
    """The study as Markdown."""
    lines = [
        "# Soundness: what certificates say, attacked",
        "",
        f"{told['cases']:,} random networks of 2 to 14 nodes were certified by `byzmesh.studies.soundness`; every",
        "level that was said to hold was attacked: placements, searched inputs and lies, silent liars, many rounds.",
        f"**{len(told['broken'])} were wrong.** Each cell: holds / does not hold / unknown.",
        "",
        "| rule | bounded | fair | agrees | connected |",
        "| --- | --- | --- | --- | --- |",
    ]
    for rule, levels in told["counts"].items():
        cells = [" / ".join(f"{counts[status]:,}" for status in STATUSES) for counts in levels.values()]
        lines.append(f"| {rule} | " + " | ".join(cells) + " |")
    lines += ["", *(f"- {text}" for text in told["broken"])] if told["broken"] else []
    again = f"python -m byzmesh.studies.soundness {told['cases']} reports/soundness $(git rev-parse --short HEAD)"
    lines += ["", f"Revision {told['revision']}, {told['budget']:,} inputs per search. Again: `{again}`.", ""]
    return "\n".join(lines)
