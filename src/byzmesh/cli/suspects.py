"""`byzmesh suspects`: who lied?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from byzmesh.cli._options import STORE, Json, StorePath, Where
from byzmesh.errors import ConfigError

if TYPE_CHECKING:
    from byzmesh.networks import Network

ORDER = 140


def command(
    run: Annotated[str | None, typer.Argument(help="Key of a run, or a unique beginning of it.")] = None,
    store: StorePath = STORE,
    where: Where = None,
    draw: Annotated[Path | None, typer.Option(help="Draw the cuts on the graph: PNG, SVG or PDF.")] = None,
    worker: Annotated[
        str | None, typer.Option(help="Show the neighbours of this worker only, by number or name.")
    ] = None,
    graded: Annotated[
        bool,
        typer.Option("--graded", help="How often the named workers really lie, over all runs that match --where."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Name the liars of a stored run by how often they were cut, or say that the record cannot tell.

    Name the run by its key, or let --where select exactly one.

    Example: byzmesh suspects --where rule=IOS --where attack=ALIE --where seed=0 --draw cuts.png
    """
    import json
    from dataclasses import asdict

    from byzmesh.config.filters import filters, one_run
    from byzmesh.store import open_store
    from byzmesh.sweeps.build import network_as_run
    from byzmesh.sweeps.forensics import grade, suspects

    with open_store(store, readonly=True) as opened:
        if graded:
            grades = grade(opened, [stored.key for stored in opened.list(filters(opened, where), current=True)])
            typer.echo(json.dumps(asdict(grades)) if as_json else grades_in_words(grades))
            return
        key = one_run(opened, run, where)
        findings = suspects(opened, key, draw)
        network = network_as_run(opened.get(key).config)
    if as_json:
        named = {} if network.names is None else {"names": list(network.names)}
        typer.echo(json.dumps({**asdict(findings), **named}))
    else:
        print_findings(findings, network, None if worker is None else network.node(worker))


def grades_in_words(grades: Any) -> str:
    """The counts as text, with the rates that follow from them."""
    lines = [f"Runs that cut somebody: {grades.runs}; {grades.naming} of them name somebody."]
    if grades.naming:
        lines.append(
            f"Named: {grades.named} workers, {grades.right} of them liars (precision {grades.precision:.1%}); runs "
            f"that name an honest worker: {grades.framing} (95% interval up to {grades.framing_at_most:.1%} of them)."
        )
    if grades.liars:
        lines.append(f"Liars: {grades.liars}, {grades.right} of them named (recall {grades.recall:.1%}).")
    return "\n".join(lines)


def print_findings(findings: Any, network: Network, worker: int | None) -> None:
    """Print a summary in words, then how often each was cut, over the network or at one worker."""
    from rich.console import Console
    from rich.table import Table

    from byzmesh.theory.forensics import LEAST_ROUNDS, MEASURED, OFTEN, SELDOM

    console = Console(markup=False)  # names of sites may contain brackets
    if findings.verdict == "named":
        names = ", ".join(network.label(node) for node in findings.named)
        console.print(
            f"Named: {names}, cut in {OFTEN:.0%} of the rounds or more, all others in less than {SELDOM:.0%}."
        )
        console.print(f"How sure is that: {MEASURED}")
    elif findings.verdict == "nobody":
        console.print(
            f"Nobody stands out: all were cut in less than {SELDOM:.0%} of the rounds. Liars may have blended in."
        )
    else:
        console.print(
            f"Cannot tell: the cuts are spread over workers that may all be honest (or there are fewer than "
            f"{LEAST_ROUNDS} rounds). Honest workers whose data differ look like liars here."
        )
    if findings.precision is not None:
        console.print(f"Of the named, {findings.precision:.0%} are liars.")
    if findings.recall is not None:
        console.print(
            f"Of the liars, {findings.recall:.0%} are named; {findings.caught:.1%} of their messages were cut."
        )
    wrong = [rate for *_, rate in findings.mistaken]
    often = f", {sum(wrong) / len(wrong):.1%} of the time on average" if wrong else ""
    console.print(f"Honest links cut by mistake at least once: {len(wrong)}{often}.")
    shown = findings.network
    if worker is not None:
        if worker not in findings.worker:
            others = ", ".join(network.label(node) for node in sorted(findings.worker))
            raise ConfigError(f"worker {network.label(worker)} cut nobody; workers that did: {others}")
        shown = findings.worker[worker]
    title = "cuts" if worker is None else f"cuts by worker {network.label(worker)}"
    table = Table(title=title, title_justify="left")
    for heading in ("worker", "cut", "truth"):
        table.add_column(heading, justify="right")
    for one in shown:
        truth = "" if one.lies is None else "lies" if one.lies else "honest"
        table.add_row(network.label(one.sender), f"{one.rate:.1%}", truth)
    console.print(table)
