"""`byzmesh bench`: how fast a round is on this machine."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions, no scaling table.")] = False,
) -> None:
    """Measure rounds per second per rule and attack beside the floor of bare products, and how rounds scale.

    Example: byzmesh bench --quick
    """
    import json

    from byzmesh.studies.bench import draws_share, rounds_table, scaling

    result = {
        "rounds": rounds_table(rounds=30 if quick else 100, repeats=3 if quick else 7),
        "draws_share": draws_share(repeats=3 if quick else 7),
        "scaling": [] if quick else scaling(),
    }
    if as_json:
        typer.echo(json.dumps(result, indent=2))
        return
    from byzmesh.cli.show_bench import print_bench

    print_bench(result)
