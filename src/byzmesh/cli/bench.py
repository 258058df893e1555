"""`byzmesh bench`: how fast a round is on this machine."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from byzmesh.cli._options import Json, Plugins, names

ORDER = 170


def command(
    as_json: Json = False,
    plugin: Plugins = None,
    rules: Annotated[str, typer.Option(help="More rules to measure, separated by commas.")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions, no scaling table.")] = False,
) -> None:
    """Measure rounds per second by rule and attack, the phases of a round beside bare arithmetic, and how rounds scale.

    Example: byzmesh bench --quick
    """
    import json

    from byzmesh.plugins import load_plugins
    from byzmesh.studies.bench import draws_share, phases_table, rounds_table, scaling

    load_plugins(plugin or ())
    result = {
        "rounds": rounds_table(rounds=30 if quick else 100, repeats=3 if quick else 7, more=names(rules)),
        "phases": {dtype: phases_table(dtype, repeats=5 if quick else 15) for dtype in ("float32", "float64")},
        "draws_share": draws_share(repeats=3 if quick else 7),
        "scaling": [] if quick else scaling(),
    }
    if as_json:
        typer.echo(json.dumps(result, indent=2))
        return
    print_bench(result)


def print_bench(result: dict[str, Any]) -> None:
    """The tables of `byzmesh bench`."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(title="One round: two-castle, non-iid, paper profile in float32, one thread", title_justify="left")
    for heading in ("rule", "attack", "ms", "rounds/s", "x WeiMean"):
        table.add_column(heading, justify="left" if heading in ("rule", "attack") else "right")
    for row in result["rounds"]:
        cells = (f"{row['ms']:.3f}", f"{row['rounds_per_second']:.0f}", f"{row['mean']:.2f}")
        table.add_row(row["rule"], row["attack"], *cells)
    console.print(table)
    for dtype, rows in result["phases"].items():
        parts = Table(
            title=f"Phases of an IOS round, {dtype}, beside bare arithmetic in the cache", title_justify="left"
        )
        for heading in ("phase", "ms", "floor, ms", "x floor"):
            parts.add_column(heading, justify="left" if heading == "phase" else "right")
        for row in rows:
            floor = (f"{row['floor_ms']:.3f}", f"{row['ratio']:.2f}") if "ratio" in row else ("", "")
            parts.add_row(row["phase"], f"{row['ms']:.3f}", *floor)
        console.print(parts)
        console.print(f"{1e3 / rows[-1]['ms']:.0f} rounds per second")
    console.print(f"Drawing the batches takes {result['draws_share']:.1%} of an IOS round.")
    if result["scaling"]:
        grown = Table(title="IOS under sign-flipping as the network or the model grows", title_justify="left")
        for heading in ("workers", "dimension", "ms per round", "us per worker", "peak MB", "models MB"):
            grown.add_column(heading, justify="right")
        for row in result["scaling"]:
            workers, dimension = row.get("workers", 10), row.get("dimension", 7850)
            each = 1e3 * row["ms"] / workers
            memory = (f"{row['peak_mb']:.0f}", f"{row['models_mb']:.1f}")
            grown.add_row(f"{workers}", f"{dimension}", f"{row['ms']:.2f}", f"{each:.1f}", *memory)
        console.print(grown)
