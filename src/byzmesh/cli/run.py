"""`byzmesh run`: one simulation."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from byzmesh.cli._options import Config, Json, Settings

ORDER = 10


def command(
    config: Config,
    settings: Settings = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the checkpoint, metrics and final models.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint in --out.")] = False,
    checkpoint_every: Annotated[float, typer.Option(help="Seconds between checkpoints in --out.")] = 30.0,
    as_json: Json = False,
) -> None:
    """Train on a network under attack.

    Example: byzmesh run examples/two-castle.yaml --set rule=krum --out runs/krum
    """
    from byzmesh.config.overrides import load_config
    from byzmesh.sweeps.single import run_single

    result = run_single(
        load_config(config, settings or ()), out, resume=resume, every=checkpoint_every, watch=watch(quiet=as_json)
    )
    print_run(result, as_json=as_json)
    if result.status == "diverged":
        raise typer.Exit(1)


def watch(*, quiet: bool) -> Callable[[Any], AbstractContextManager[Callable[[Mapping[str, float]], None]]]:
    """A progress bar with accuracy, CE, rounds per second and time left; nothing when not a terminal."""

    @contextmanager
    def show(simulation: Any) -> Iterator[Callable[[Mapping[str, float]], None]]:
        if quiet or not sys.stderr.isatty():
            yield lambda record: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.completed:>7.0f}/{task.total:.0f} rounds"),
            BarColumn(),
            TextColumn("{task.fields[facts]}"),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=Console(stderr=True)) as progress:
            bar = progress.add_task("", total=simulation.rounds, completed=simulation.round, facts="", speed="")

            def tell(record: Mapping[str, float]) -> None:
                rate = simulation.round / simulation.seconds if simulation.seconds else 0.0
                progress.update(bar, completed=simulation.round, facts=facts(record), speed=f"{rate:.0f} rounds/s")

            yield tell

    return show


def facts(record: Mapping[str, float]) -> str:
    """The numbers that matter, short: what the task measures first, the consensus error, and what was asked for."""
    from byzmesh.training.metrics import UNASKED, metric_of

    first = next(name for name in record if name != "round")
    asked = (name for name in record if name not in (*UNASKED, first))
    parts = [f"{metric_of(name).words} {metric_of(name).text(record[name])}" for name in (first, *asked)]
    return "  ".join([parts[0], f"CE {record['consensus_error']:.1e}", *parts[1:]])


def print_run(run: Any, *, as_json: bool) -> None:
    """The result of a run on stdout."""
    last = {name: float(values[-1]) for name, values in run.metrics.items()} if run.metrics else {}
    mean = {name: run.final(name) for name in run.metrics if name != "round"}
    if as_json:
        import json

        print(
            json.dumps(
                {
                    "status": run.status,
                    "rounds": run.rounds,
                    "seconds": run.seconds,
                    "final": last,
                    "mean_of_last": mean,
                    "metrics": {name: values.tolist() for name, values in run.metrics.items()},
                    "config": run.config,
                }
            )
        )
        return
    from rich.console import Console
    from rich.table import Table

    from byzmesh.training.metrics import last_evaluations, metric_of

    table = Table(title=f"{run.config['rule']['name']} under {run.config['attack']['name']}, {run.status}")
    counted = len(last_evaluations(run.metrics["round"])) if run.metrics else 0
    for heading in ("metric", "last", f"mean of last {counted}"):
        table.add_column(heading, justify="left" if heading == "metric" else "right")
    for name, value in mean.items():
        metric = metric_of(name)
        table.add_row(name, metric.text(last[name]), metric.text(value))
    if run.edges is not None:
        table.add_row("honest messages cut", "", f"{run.edges.mistakes:.2%}")
    rate = run.rounds / run.seconds if run.seconds else 0.0
    table.caption = f"{run.rounds} rounds in {run.seconds:.1f} s ({rate:.0f} rounds/s)"
    Console().print(table)
