"""How a reproduction looks in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from byzmesh.cli.show_runs import wide_console
from byzmesh.reports.text_table import to_rich
from byzmesh.studies.paper.agreement import agreement_grid, compare
from byzmesh.studies.paper.report import Reproduction, sections
from byzmesh.studies.paper.text import quick_text


def names(text: str) -> list[str]:
    """Names separated by commas.

    >>> names("IOS, FABA"), names("")
    (['IOS', 'FABA'], [])
    """
    return [name.strip() for name in text.split(",") if name.strip()]


def table_1_rows(targets: Sequence[str], quick: bool) -> list[Any]:
    """The records of Table I, which is computed and not run; none unless it is asked for."""
    if "table-1" not in targets:
        return []
    from byzmesh.studies.paper.table1 import table_1

    return table_1(budget=2_000 if quick else 20_000)


def print_reproduction(shown: Reproduction, written: Sequence[Path]) -> None:
    """All tables, the counts of agreeing cells, and where the files are."""
    console = wide_console()
    for section in sections(shown).values():
        for grid in section.grids:
            console.print(to_rich(grid))
    cells = compare(shown.readings)
    if cells and not shown.quick:
        console.print(to_rich(agreement_grid(cells)))
    for text in quick_text(shown.targets) if shown.quick else ():
        console.print(text, highlight=False)
    waiting = sum(reading.status not in ("finished", "diverged", "failed") for reading in shown.readings)
    if waiting:
        console.print(f"{waiting} cells are not computed yet.", highlight=False)
    folder = written[-1].parent
    console.print(f"{len(written)} files in {folder}; open {written[-1]}", highlight=False, soft_wrap=True)
