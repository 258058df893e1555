"""`byzmesh arena`: run rules against attacks and rank the rules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from byzmesh.cli._options import STORE, CheckpointSeconds, Compute, Dask, Last, NewStorePath, Plugins, Workers, names
from byzmesh.files import CHECKPOINT_SECONDS

ORDER = 110


def command(
    programme: Annotated[
        str,
        typer.Argument(
            help="open: what the options select; tables: our rule in the paper's 25 attack columns; "
            "attackers: IPM, dissensus and the adaptive attacker against eight rules."
        ),
    ] = "open",
    rules: Annotated[str, typer.Option(help="Rules, separated by commas.")] = "Reprieve,IOS,FABA,CC,WeiMean",
    attacks: Annotated[
        str, typer.Option(help="Attacks, separated by commas.")
    ] = "sign-flipping,isolation,sample-duplicating,ALIE,adaptive",
    graphs: Annotated[str, typer.Option(help="Names of networks, separated by commas.")] = "paper/two-castle",
    partitions: Annotated[str, typer.Option(help="Partitions of the data, separated by commas.")] = "one-class",
    bounds: Annotated[
        str, typer.Option(help="The f given to rules: exact, f - 1, f + 1, separated by commas.")
    ] = "exact",
    seeds: Annotated[int, typer.Option(help="Seeds per cell.")] = 1,
    rounds: Annotated[int, typer.Option(help="Rounds per run.")] = 50_000,
    plugin: Plugins = None,
    last: Last = None,
    quick: Annotated[bool, typer.Option("--quick", help="1,000 rounds per run: minutes instead of hours.")] = False,
    against: Annotated[
        Path | None,
        typer.Option(help="results.csv of a reproduction, whose rules are ranked too.", exists=True, dir_okay=False),
    ] = None,
    store: NewStorePath = STORE,
    out: Annotated[Path, typer.Option(help="Folder for tables and the report.")] = Path("arena"),
    workers: Workers = None,
    dask: Dask = None,
    run: Compute = True,
    checkpoint_seconds: CheckpointSeconds = CHECKPOINT_SECONDS,
) -> None:
    """Run rules against attacks; rank them by worst regret to the best rule of each column, and by worst case.

    Every run is kept in the store: Ctrl-C stops, the same command continues.

    Example: byzmesh arena --quick --rules Reprieve,IOS --attacks ALIE,isolation
    """
    from rich.console import Console

    from byzmesh.cli._progress import progress, stop_if_interrupted
    from byzmesh.files import folder
    from byzmesh.reports.text_table import to_rich
    from byzmesh.store import open_store
    from byzmesh.studies.arena.grid import Selection
    from byzmesh.studies.arena.grid import programme as cells_of
    from byzmesh.studies.arena.report import (
        compare_columns,
        in_columns,
        leaderboard,
        leaderboard_grid,
        values_of,
        write_arena,
    )
    from byzmesh.studies.paper.cells import configs
    from byzmesh.studies.paper.results import read_results
    from byzmesh.studies.readings import collect
    from byzmesh.sweeps.sweep import sweep

    selection = Selection(
        rules=names(rules),
        attacks=names(attacks),
        graphs=names(graphs),
        partitions=names(partitions),
        bounds=names(bounds),
        seeds=seeds,
        rounds=rounds,
        plugins=plugin or (),
    )
    cells = cells_of(programme, selection, quick=quick)
    reproduction = [] if against is None else read_results(against)
    folder(out)
    if run:
        with progress() as show:
            swept = sweep(
                configs(cells), store, workers=workers, dask=dask, checkpoint_seconds=checkpoint_seconds, show=show
            )
        stop_if_interrupted(swept)
    with open_store(store, readonly=True) as opened:
        readings = collect(opened, cells, last)
        lines = compare_columns(readings, reproduction) if reproduction else []
        written = write_arena(opened, readings, out, lines, last, reproduction)
    Console().print(to_rich(leaderboard_grid(leaderboard(values_of(in_columns(readings, reproduction))))))
    typer.echo(f"{len(written)} files in {out}: " + ", ".join(path.name for path in written))
