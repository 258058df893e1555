"""`byzmesh suspects`: who lied?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from byzmesh.cli._options import STORE, Json, StorePath, Where
from byzmesh.errors import ConfigError

ORDER = 140


def command(
    run: Annotated[str | None, typer.Argument(help="Key of a run, or a unique beginning of it.")] = None,
    store: StorePath = STORE,
    where: Where = None,
    draw: Annotated[Path | None, typer.Option(help="Draw the cuts on the graph: PNG, SVG or PDF.")] = None,
    worker: Annotated[int | None, typer.Option(help="Rank the neighbours of this worker only.")] = None,
    as_json: Json = False,
) -> None:
    """Rank the suspects of a stored run by how often they were cut, beside the truth of the simulation.

    Name the run by its key, or let --where select exactly one.

    Example: byzmesh suspects --where rule=IOS --where attack=ALIE --where seed=0 --draw cuts.png
    """
    import json
    from dataclasses import asdict

    from byzmesh.config.filters import one_run
    from byzmesh.store import open_store
    from byzmesh.sweeps.forensics import suspects

    with open_store(store, readonly=True) as opened:
        findings = suspects(opened, one_run(opened, run, where), draw)
    if as_json:
        typer.echo(json.dumps(asdict(findings)))
    else:
        print_findings(findings, worker)


def print_findings(findings: Any, worker: int | None) -> None:
    """Print a summary in words, then the ranking over the network or at one worker."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if findings.precision is not None:
        console.print(f"Of the most suspected, {findings.precision:.0%} are liars.")
        console.print(f"Of the liars' messages, {findings.caught:.1%} were cut.")
    wrong = [rate for *_, rate in findings.mistaken]
    often = f", {sum(wrong) / len(wrong):.1%} of the time on average" if wrong else ""
    console.print(f"Honest links cut by mistake at least once: {len(wrong)}{often}.")
    ranked = findings.network
    if worker is not None:
        if worker not in findings.worker:
            raise ConfigError(f"worker {worker} cut nobody; workers that did: {sorted(findings.worker)}")
        ranked = findings.worker[worker]
    table = Table(title="suspects" if worker is None else f"suspects of worker {worker}", title_justify="left")
    for heading in ("worker", "cut", "above usual", "truth"):
        table.add_column(heading, justify="right")
    for suspect in ranked:
        truth = "" if suspect.lies is None else "lies" if suspect.lies else "honest"
        table.add_row(str(suspect.sender), f"{suspect.rate:.1%}", f"{suspect.suspicion:+.1%}", truth)
    console.print(table)
