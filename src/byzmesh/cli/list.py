"""`byzmesh list`: the parts that are available."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from byzmesh.cli._options import Json, Plugins

ORDER = 50


class Kind(StrEnum):
    """What can be listed."""

    rules = "rules"
    attacks = "attacks"
    topologies = "topologies"
    processes = "processes"
    weights = "weights"
    problems = "problems"
    partitions = "partitions"
    modules = "modules"
    augmentations = "augmentations"
    schedules = "schedules"
    stages = "stages"
    profiles = "profiles"
    metrics = "metrics"


def command(
    kind: Annotated[Kind, typer.Argument(help="What to list.", show_default=False)],
    plugin: Plugins = None,
    as_json: Json = False,
) -> None:
    """List rules, attacks, topologies, processes, problems, their parts, step sizes or metrics, with their options.

    Example: byzmesh list rules
    """
    import json

    from byzmesh.catalogue import everything, printable
    from byzmesh.plugins import load_plugins

    load_plugins(plugin or ())
    rows = everything(kind.value)
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    from rich.console import Console

    Console().print(printable(kind.value, rows))
