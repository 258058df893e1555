"""`byzmesh audit`: how bad can it get?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from byzmesh.cli._options import STORE, Config, Dask, Json, NewStorePath, Plugins, Settings, Workers

ORDER = 115


def command(
    config: Config,
    settings: Settings = None,
    plugin: Plugins = None,
    rule: Annotated[
        list[str] | None, typer.Option(help="Rule to audit (default: the config's); repeatable.", show_default=False)
    ] = None,
    start: Annotated[
        list[str] | None,
        typer.Option(help="First models: zero, common, normal; torch: common, own (default: all); repeatable."),
    ] = None,
    runs: Annotated[int, typer.Option(help="Short runs per rule, in three stages.")] = 200,
    rounds: Annotated[int | None, typer.Option(help="Rounds of the last stage (default: the config's).")] = None,
    minutes: Annotated[float | None, typer.Option(help="Limit on the time.")] = None,
    total_rounds: Annotated[
        int | None, typer.Option(help="Limit on the rounds of all runs together (finds the same on every machine).")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Fresh seeds of the last stage.")] = 5,
    finals: Annotated[int, typer.Option(help="Lies per rule in the last stage.")] = 2,
    at_least: Annotated[
        float | None,
        typer.Option(help="Exit with 1 if a worst case is below this accuracy in percent (a loss: above this)."),
    ] = None,
    store: NewStorePath = STORE,
    out: Annotated[Path, typer.Option(help="Folder for the report, JSON and the configs of the worst cases.")] = Path(
        "audit"
    ),
    workers: Workers = None,
    dask: Dask = None,
    as_json: Json = False,
) -> None:
    """The worst accuracy over attacks, their parameters, starts and seeds, within a budget of runs, rounds or minutes.

    Every run is kept in the store: Ctrl-C stops, the same command continues.

    Example: byzmesh audit examples/two-castle.yaml --rule IOS --rule Reprieve --minutes 5
    """
    import json

    from rich.console import Console

    from byzmesh.cli._progress import progress
    from byzmesh.config.overrides import read_config, with_plugins
    from byzmesh.config.yaml import parse_value
    from byzmesh.files import folder_later
    from byzmesh.plugins import load_plugins
    from byzmesh.reports.text_table import to_rich
    from byzmesh.studies.audit.audit import audit
    from byzmesh.studies.audit.fault_bound import bounds_grid
    from byzmesh.studies.audit.tables import verdict_grid

    written = with_plugins(read_config(config, settings or ()), load_plugins(plugin or ()))
    folder_later(out)
    with progress() as show:
        found = audit(
            written,
            rules=[parse_value(text) for text in rule or ()],
            starts=start or (),
            runs=runs,
            rounds=rounds,
            minutes=minutes,
            total_rounds=total_rounds,
            seeds=seeds,
            finals=finals,
            at_least=at_least,
            store=store,
            workers=workers,
            dask=dask,
            show=show,
        )
    if found.interrupted:
        typer.echo("Stopped. Every run keeps what it has done; the same command continues from there.", err=True)
        raise typer.Exit(130)
    files = found.write(out)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), allow_nan=False))
    else:
        console = Console()
        for grid in (verdict_grid(found), bounds_grid(found)):
            if grid is not None:
                console.print(to_rich(grid))
        console.print(str(found.limit), highlight=False, markup=False)
    typer.echo(f"{len(files)} files in {out}: " + ", ".join(path.name for path in files), err=True)
    if at_least is not None and found.lacking:
        typer.echo(f"This is no pass of --at-least, whatever was found: {found.lacking}.", err=True)
    raise typer.Exit(0 if found.holds else 1)
