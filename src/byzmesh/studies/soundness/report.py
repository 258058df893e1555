"""The study: many cases certified and attacked, counted and written down."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from byzmesh.files import write
from byzmesh.studies.soundness.attack import Broken, challenge
from byzmesh.studies.soundness.cases import RULES, draw_case


def study(count: int, budget: int = 200, first: int = 0) -> dict[str, Any]:
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
    levels = ("bounded", "fair", "agrees", "connected")
    table: dict[str, dict[str, dict[str, int]]] = {rule: {level: {} for level in levels} for rule in RULES}
    for (rule, level, status), number in sorted(counts.items()):
        table[rule][level][status] = number
    return {"cases": count, "first": first, "budget": budget, "broken": broken, "counts": table}


def main(arguments: list[str]) -> int:
    """Run the study and write counts.json and README.md to a folder; 1 if anything broke."""
    count, folder = int(arguments[0]), Path(arguments[1])
    told = study(count)
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "counts.json", json.dumps(told, indent=1) + "\n")
    write(folder / "README.md", report(told))
    return 1 if told["broken"] else 0


def report(told: dict[str, Any]) -> str:
    """The study as Markdown."""
    lines = [
        "# Soundness: what certificates say, attacked",
        "",
        f"{told['cases']:,} random networks of 4 to 14 nodes were certified by `byzmesh.studies.soundness`; every",
        "level that was said to hold was attacked: placements, searched inputs and lies, silent liars, many rounds.",
        f"**{len(told['broken'])} were wrong.** Each cell: holds / does not hold / unknown.",
        "",
        "| rule | bounded | fair | agrees | connected |",
        "| --- | --- | --- | --- | --- |",
    ]
    for rule, levels in told["counts"].items():
        cells = [
            " / ".join(f"{status.get(name, 0):,}" for name in ("proved", "refuted", "unknown"))
            for status in levels.values()
        ]
        lines.append(f"| {rule} | " + " | ".join(cells) + " |")
    lines += ["", *(f"- {text}" for text in told["broken"])] if told["broken"] else []
    lines += ["", f"Again: `python -m byzmesh.studies.soundness {told['cases']} reports/soundness`.", ""]
    return "\n".join(lines)
