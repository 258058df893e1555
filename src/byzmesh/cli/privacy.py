"""`byzmesh privacy`: what a run tells about its data."""

from __future__ import annotations

from typing import Annotated

import typer

from byzmesh.cli._options import Json, Settings

ORDER = 125


def command(
    config: Annotated[str, typer.Argument(metavar="CONFIG", help="Config of a run.")],
    delta: Annotated[float, typer.Option(help="Probability with which more may be told.")] = 1e-5,
    epsilon: Annotated[
        float | None, typer.Option(help="Target at the last round: also print how much noise it needs.")
    ] = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Print epsilon over the rounds. Exit code 0: some is proved, 2: none is, and why.

    Example: byzmesh privacy examples/private.yaml
    Example: byzmesh privacy examples/private.yaml --epsilon 2 --delta 1e-6
    """
    import json
    from dataclasses import asdict

    from byzmesh.config.overrides import read_config
    from byzmesh.config.schema import resolve
    from byzmesh.sweeps.privacy import privacy

    told = privacy(resolve(read_config(config, settings or ())), delta, epsilon)
    typer.echo(json.dumps(asdict(told), indent=2) if as_json else str(told))
