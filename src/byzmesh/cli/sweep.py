"""`byzmesh sweep`: all runs of a grid."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    grid: Annotated[Path, typer.Argument(help="YAML file of the grid; see examples/grid-*.yaml.", show_default=False)],
    store: Annotated[Path, typer.Option(help="Store of runs; made if there is none.")] = Path("runs.db"),
    workers: Annotated[int | None, typer.Option(help="Processes on this machine (default: one per core).")] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only list the runs, with an estimate of the time.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the runs as JSON.")] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Compute failed runs once more.")] = False,
    checkpoint: Annotated[float, typer.Option(help="Seconds between the checkpoints of a run.")] = 15.0,
    dask: Annotated[str | None, typer.Option(help="Scheduler of a Dask cluster, e.g. tcp://host:8786.")] = None,
    tls_ca: Annotated[str | None, typer.Option(help="Certificate of the cluster's authority (PEM).")] = None,
    tls_cert: Annotated[str | None, typer.Option(help="This client's certificate (PEM).")] = None,
    tls_key: Annotated[str | None, typer.Option(help="This client's private key (PEM).")] = None,
    tensorboard: Annotated[Path | None, typer.Option(help="Folder for TensorBoard event files.")] = None,
) -> None:
    """Compute the runs of a grid that the store does not hold yet. Ctrl-C stops; the same command goes on.

    Example: byzmesh sweep examples/grid-two-castle.yaml --store runs.db --workers 2
    """
    from byzmesh.cli.show_sweep import print_outcome, print_plan, progress, tls_of
    from byzmesh.config.grid import read_grid
    from byzmesh.sweeps.estimate import plan as plan_runs
    from byzmesh.sweeps.sweep import cores, sweep

    points = read_grid(grid)
    if plan:
        planned = plan_runs(points, store, retry_failed=retry_failed)
        print_plan(planned, cores() if workers is None else workers, as_json=as_json)
        return
    with progress() as show:
        outcome = sweep(
            [point.config for point in points],
            store,
            workers=workers,
            dask=dask,
            tls=tls_of(tls_ca, tls_cert, tls_key),
            retry_failed=retry_failed,
            checkpoint_seconds=checkpoint,
            tensorboard=tensorboard,
            show=show,
        )
    print_outcome(outcome, store, as_json=as_json)
    raise typer.Exit(130 if outcome.interrupted else 1 if outcome.failed else 0)
