"""A table of text, and its plain forms: terminal (rich), Markdown, CSV, LaTeX with booktabs.

Whoever builds the grid decides what a cell says; this module only lays it out. A cell has a main text, a second line in
smaller print (`detail`), a text for hovering (`tip`), a number to sort by and a tone (see `TONES`).
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
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
    "infeasible": "dim italic",
    "": "",
}
"""Tone -> style in a terminal."""
LONG = 40
"""From this length a cell is a sentence: left-aligned and wrapped."""


@dataclass(frozen=True)
class GridCell:
    """One cell; `value` NaN sorts last."""

    text: str
    detail: str = ""
    _: KW_ONLY
    tip: str = ""
    value: float = math.nan
    tone: str = ""
    best: bool = False
    """Whether it is printed in bold: the best of its column, or not distinguishable from it."""


EMPTY = GridCell("")


@dataclass(frozen=True, kw_only=True)
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
    groups: tuple[tuple[str, ...], ...] = ()
    """For columns by several fields, the parts of each heading: LaTeX prints equal neighbours once, above a rule."""


def to_rich(grid: Grid) -> Table:
    """For a terminal; the detail is below the main text."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=grid.title, caption=grid.note or None, caption_justify="left")
    table.add_column(grid.corner)
    for column in grid.columns:
        table.add_column(column, justify="right")
    for label, cells in grid.rows:
        shown = [
            Text(cell.text, f"{TONES[cell.tone]} bold" if cell.best else TONES[cell.tone])
            + (Text(f"\n{cell.detail}", "dim") if cell.detail else Text(""))
            for cell in cells
        ]
        table.add_row(Text(label), *shown)
    return table


def to_markdown(grid: Grid) -> str:
    """A pipe table under its title.

    >>> rows = (("IOS", (GridCell("91.7", "pub 91.6"),)),)
    >>> print(to_markdown(Grid(name="t", title="Title", corner="rule", columns=("none",), rows=rows)))
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


def to_csv(grid: Grid) -> str:
    """Main texts only, as comma-separated values."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((grid.corner, *grid.columns))
    writer.writerows((label, *(cell.text for cell in cells)) for label, cells in grid.rows)
    return out.getvalue()


def to_latex(grid: Grid) -> str:
    """A `table*` with booktabs rules, shrunk if it is wider than the page; details are in small print."""
    body = []
    for label, cells in grid.rows:
        shown = [
            rf"\shortstack[r]{{{_tex_text(cell)}\\{{\scriptsize {_tex(cell.detail)}}}}}"
            if cell.detail
            else _tex_text(cell)
            for cell in cells
        ]
        body.append("    " + " & ".join([_tex(label), *shown]) + r" \\")
    kinds = [
        r"p{0.4\textwidth}" if any(len(cells[column].text) > LONG for _, cells in grid.rows) else "r"
        for column in range(len(grid.columns))
    ]
    lines = [
        r"% needs \usepackage{booktabs,graphicx}",
        r"\begin{table*}",
        r"  \centering",
        rf"  \caption{{{_tex(grid.title)}}}",
        rf"  \label{{tab:{grid.name}}}",
        r"  \resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
        rf"  \begin{{tabular}}{{l{''.join(kinds)}}}",
        r"    \toprule",
        *_tex_heads(grid),
        r"    \midrule",
        "\n    \\addlinespace\n".join(body),
        r"    \bottomrule",
        r"  \end{tabular}}",
        *([rf"  \par\smallskip\footnotesize {_tex(grid.note)}"] if grid.note else []),
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def _tex_heads(grid: Grid) -> list[str]:
    """The lines of headings: one, or one per field with a rule under what several columns share."""
    if not grid.groups:
        return ["    " + " & ".join(_tex(word) for word in (grid.corner, *grid.columns)) + r" \\"]
    lines = []
    for level in range(len(grid.groups[0]) - 1):
        spans: list[list[int]] = []
        for column, parts in enumerate(grid.groups):
            if spans and grid.groups[spans[-1][0]][: level + 1] == parts[: level + 1]:
                spans[-1].append(column)
            else:
                spans.append([column])
        shown = [rf"\multicolumn{{{len(span)}}}{{c}}{{{_tex(grid.groups[span[0]][level])}}}" for span in spans]
        lines.append("    " + " & ".join(["", *shown]) + r" \\")
        lines.append("    " + " ".join(rf"\cmidrule(lr){{{span[0] + 2}-{span[-1] + 2}}}" for span in spans))
    lines.append(
        "    " + " & ".join(_tex(word) for word in (grid.corner, *(parts[-1] for parts in grid.groups))) + r" \\"
    )
    return lines


def _tex_text(cell: GridCell) -> str:
    return rf"\textbf{{{_tex(cell.text)}}}" if cell.best else _tex(cell.text)


def _one_line(cell: GridCell) -> str:
    text = f"**{cell.text}**" if cell.best else cell.text
    return f"{text} ({cell.detail})" if cell.detail else text


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
