"""Writes the README of a committed reproduction from its `results.csv`: counts, and every cell that does not agree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from byzmesh.reports.text_table import to_markdown
from byzmesh.studies.paper.agreement import CLOSE, NEAR, Compared, agreement_grid, compare, is_apart, is_outside, kind
from byzmesh.studies.paper.published import ROUNDS, published
from byzmesh.studies.readings import Reading

ENDED = ("finished", "diverged")


def readme(readings: Iterable[Reading], notes: str = "") -> str:
    """The README for the readings of a `results.csv` and an `outside.csv`; `notes` is Markdown with explanations."""
    compared = compare(readings)
    cells = [cell for cell in compared if not is_outside(cell)]
    counted = [cell for cell in cells if not is_apart(cell.reading.target, cell.reading.rule)]
    apart = [cell for cell in cells if is_apart(cell.reading.target, cell.reading.rule)]
    computed = [cell for cell in cells if not math.isnan(cell.gap)]
    lines = [
        "# The paper, reproduced",
        "",
        f"{len(computed)} of the {len(published())} published cells of Tables II to VI, each beside ours "
        "([results.csv](results.csv),",
        "[report.html](report.html); figures in PNG and PDF). Made by `byzmesh reproduce`, as is this page. Accuracies",
        "are in percent, differences in percentage points, ours minus published.",
        "",
        *(
            []
            if len(computed) == len(cells)
            else ["**Not complete: a cell without a number counts as not agreeing.**", ""]
        ),
        *_other_rounds(computed),
        "## Agreement",
        "",
        *to_markdown(agreement_grid(compared)).splitlines()[2:],
        "",
        "SimRew's published runs set a liar's similarity to 0, which no worker could know; non-iid DRSA's accuracy",
        "moves by two points and more from one evaluation to the next in some runs.",
        "",
        *_unfinished([cell for cell in cells if math.isnan(cell.gap)]),
        *_section("Cells that differ by more than 1.0", [cell for cell in counted if abs(cell.gap) > NEAR]),
        *_section(
            "Cells that differ by more than 0.5 and at most 1.0",
            [cell for cell in counted if cell.within(NEAR) and abs(cell.gap) > CLOSE],
        ),
        *_section("Cells counted apart, by more than 0.5", [cell for cell in apart if abs(cell.gap) > CLOSE]),
        *_error_section([cell for cell in counted if not cell.same_error and not math.isnan(cell.gap)]),
        *_outside([cell for cell in compared if is_outside(cell)]),
    ]
    if notes:
        lines += [notes.strip(), ""]
    return "\n".join(lines).rstrip() + "\n"


def _other_rounds(cells: Sequence[Compared]) -> list[str]:
    """A warning if runs do not have the published number of rounds."""
    other = {cell.reading.rounds for cell in cells if cell.reading.rounds != ROUNDS[cell.reading.target]}
    if not other:
        return []
    shown = ", ".join(f"{rounds:,}" for rounds in sorted(other))
    return [f"**Some runs have {shown} rounds, not the published number: the counts below say nothing of them.**", ""]


def _section(title: str, cells: Sequence[Compared]) -> list[str]:
    if not cells:
        return [f"## {title}", "", "None.", ""]
    lines = [f"## {title} ({len(cells)})", "", "| table | rule | attack | published | ours | difference | verdict |"]
    lines[-1] += " other seeds |"
    lines.append("| :-- | :-- | :-- | --: | --: | --: | :-- | --: |")
    for cell in sorted(cells, key=lambda cell: -abs(cell.gap)):
        reading = cell.reading
        seeds = ", ".join(f"{other.accuracy:.2f}" for other in cell.other_seeds)
        lines.append(
            f"| {reading.target} | {reading.rule} | {reading.attack} | {cell.theirs.accuracy:.2f} "
            f"| {reading.accuracy:.2f} | {cell.gap:+.3f} | {_verdict(cell)} | {seeds} |"
        )
    return [*lines, ""]


def _unfinished(cells: Sequence[Compared]) -> list[str]:
    if not cells:
        return []
    lines = [f"## Cells without a number ({len(cells)})", ""]
    lines += [
        f"- {cell.reading.target}, {cell.reading.rule}, {cell.reading.attack}: {cell.reading.status}" for cell in cells
    ]
    return [*lines, ""]


def _verdict(cell: Compared) -> str:
    if kind(cell.theirs.accuracy) == "collapsed":
        return "both collapsed" if cell.same_verdict else "only the published one collapsed"
    return kind(cell.theirs.accuracy) if cell.same_verdict else "only ours collapsed"


def _error_section(cells: Sequence[Compared]) -> list[str]:
    title = "Consensus errors that do not agree"
    if not cells:
        return [f"## {title}", "", "None.", ""]
    lines = [f"## {title} ({len(cells)})", "", "| table | rule | attack | published | ours | H | other seeds |"]
    lines.append("| :-- | :-- | :-- | --: | --: | --: | --: |")
    for cell in cells:
        reading = cell.reading
        seeds = ", ".join(f"{other.consensus_error:.1e}" for other in cell.other_seeds)
        lines.append(
            f"| {reading.target} | {reading.rule} | {reading.attack} | {cell.theirs.consensus_error} "
            f"| {reading.consensus_error:.1e} | {reading.disagreement:.1e} | {seeds} |"
        )
    return [*lines, ""]


def _outside(cells: Sequence[Compared]) -> list[str]:
    """The cells that others published beside the paper: every one that differs, in accuracy or in CE."""
    if not cells:
        return []
    ended = sum(cell.reading.status in ENDED for cell in cells)
    which = "All" if ended == len(cells) else f"{ended} of the"
    lines = [
        "## From outside",
        "",
        f"{which} {len(cells)} cells published with the paper's official code that are not in the paper:",
        "IOS on two-castle graphs with 20 honest and 2 to 10 lying workers, one seed each. All of them, ours beside",
        "theirs: [outside.md](outside.md), [outside.csv](outside.csv). Those that differ by more than 0.5, or in CE:",
        "",
        "| liars | attack | published | ours | difference | verdict | published CE | our CE |",
        "| --: | :-- | --: | --: | --: | :-- | --: | --: |",
    ]
    for cell in cells:
        reading = cell.reading
        ours, gap, error = f"{reading.accuracy:.2f}", f"{cell.gap:+.3f}", f"{reading.consensus_error:.1e}"
        if cell.within(CLOSE) and cell.same_error:
            continue
        if math.isnan(cell.gap):
            ours, gap, error = reading.status, "", ""
        verdict = _verdict(cell) if reading.status in ENDED else ""
        lines.append(
            f"| {reading.variant.split()[0]} | {reading.attack} | {cell.theirs.accuracy:.2f} | {ours} | {gap} "
            f"| {verdict} | {cell.theirs.consensus_error} | {error} |"
        )
    return [*lines, ""]
