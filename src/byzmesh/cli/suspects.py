"""`byzmesh suspects`: who lied?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from byzmesh.cli.runs import STORE, Json, Key, StorePath


def command(
    run: Key,
    store: StorePath = STORE,
    draw: Annotated[Path | None, typer.Option(help="Draw the cuts on the graph: PNG, SVG or PDF.")] = None,
    worker: Annotated[int | None, typer.Option(help="Rank the neighbours of this worker only.")] = None,
    as_json: Json = False,
) -> None:
    """Rank the suspects of a stored run by who was cut how often, beside the truth of the simulation.

    Example: byzmesh suspects 3fa8 --store runs.db --draw cuts.png
    """
    import json
    from dataclasses import asdict

    from byzmesh.cli.show_suspects import print_findings
    from byzmesh.store import open_store
    from byzmesh.sweeps.forensics import suspects

    with open_store(store, readonly=True) as opened:
        findings = suspects(opened, run, draw)
    if as_json:
        typer.echo(json.dumps(asdict(findings)))
    else:
        print_findings(findings, worker)
