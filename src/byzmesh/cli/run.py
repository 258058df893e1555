"""`byzmesh run`: one simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Config = Annotated[Path, typer.Argument(help="YAML file of the run; see examples/.", show_default=False)]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="Override a key, e.g. --set rule.tau=0.1 (repeatable).")
]


def command(
    config: Config,
    settings: Settings = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the checkpoint, metrics and final models.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint in --out.")] = False,
    checkpoint_every: Annotated[float, typer.Option(help="Seconds between checkpoints in --out.")] = 30.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train on a network under attack.

    Example: byzmesh run examples/two-castle.yaml --set rule=krum --out runs/krum
    """
    from byzmesh.cli.show_run import print_run, watch
    from byzmesh.config.overrides import load_config
    from byzmesh.sweeps.single import run_single

    result = run_single(
        load_config(config, settings or ()), out, resume=resume, every=checkpoint_every, watch=watch(quiet=as_json)
    )
    print_run(result, as_json=as_json)
    if result.status == "diverged":
        raise typer.Exit(1)
