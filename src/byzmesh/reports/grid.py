"""A table of text, and its three plain forms: terminal (rich), Markdown, LaTeX with booktabs.

What a cell says is decided by whoever builds the grid; here it is only laid out. A cell has a main text, a second line
in smaller print (`detail`), a text for hovering (`tip`), a number to sort by and a tone (see `TONES`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

TONES = {
    "same": "green",
    "near": "cyan",
    "above": "blue",
    "far-above": "bold blue",
    "below": "yellow",
    "far-below": "bold red",
    "collapsed": "dim",
    "trouble": "magenta",
    "": "",
}
"""Tone -> style in a terminal."""


@dataclass(frozen=True)
class GridCell:
    """One cell; `value` NaN sorts last."""

    text: str
    detail: str = ""
    tip: str = ""
    value: float = math.nan
    tone: str = ""


EMPTY = GridCell("")


@dataclass(frozen=True)
class Grid:
    """A table: heading of the row labels, column headings, rows of (label, cells)."""

    name: str
    title: str
    corner: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[GridCell, ...]], ...]
    note: str = ""
    legend: Mapping[str, str] = field(default_factory=dict)
    """What the tones mean."""


def to_rich(grid: Grid) -> Table:
    """For a terminal; the second lines stand below the first ones."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=grid.title, caption=grid.note or None, caption_justify="left")
    table.add_column(grid.corner)
    for column in grid.columns:
        table.add_column(column, justify="right")
    for label, cells in grid.rows:
        shown = [
            Text(cell.text, TONES[cell.tone]) + (Text(f"\n{cell.detail}", "dim") if cell.detail else Text(""))
            for cell in cells
        ]
        table.add_row(Text(label), *shown)
    return table


def to_markdown(grid: Grid) -> str:
    """A pipe table under its title.

    >>> print(to_markdown(Grid("t", "Title", "rule", ("none",), (("IOS", (GridCell("91.7", "pub 91.6"),)),))))
    **Title**
    <BLANKLINE>
    | rule | none |
    | :-- | --: |
    | IOS | 91.7 (pub 91.6) |
    <BLANKLINE>
    """
    lines = [f"**{grid.title}**", ""]
    lines.append("| " + " | ".join(_pipe(word) for word in (grid.corner, *grid.columns)) + " |")
    lines.append("| :-- |" + " --: |" * len(grid.columns))
    for label, cells in grid.rows:
        lines.append("| " + " | ".join([_pipe(label), *(_pipe(_one_line(cell)) for cell in cells)]) + " |")
    if grid.note:
        lines += ["", grid.note]
    return "\n".join(lines) + "\n"


def to_latex(grid: Grid) -> str:
    """A `table` with booktabs rules; the second lines follow in small print."""
    body = []
    for label, cells in grid.rows:
        shown = [
            _tex(cell.text) + (rf" {{\scriptsize ({_tex(cell.detail)})}}" if cell.detail else "") for cell in cells
        ]
        body.append("    " + " & ".join([_tex(label), *shown]) + r" \\")
    caption = _tex(grid.title + (f". {grid.note}" if grid.note else ""))
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{caption}}}",
        rf"  \label{{tab:{grid.name}}}",
        rf"  \begin{{tabular}}{{l{'r' * len(grid.columns)}}}",
        r"    \toprule",
        "    " + " & ".join(_tex(word) for word in (grid.corner, *grid.columns)) + r" \\",
        r"    \midrule",
        *body,
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _one_line(cell: GridCell) -> str:
    return f"{cell.text} ({cell.detail})" if cell.detail else cell.text


def _pipe(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


_TEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "±": r"$\pm$",
    "−": r"$-$",
    "χ": r"$\chi$",
    "λ": r"$\lambda$",
    "ρ": r"$\rho$",
    "μ": r"$\mu$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "²": r"$^2$",
    "†": r"$^\dagger$",
}


def _tex(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in text)
