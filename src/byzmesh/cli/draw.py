"""`byzmesh draw`: a picture of a network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from byzmesh.cli._options import Plugins, Settings

ORDER = 30


def command(
    source: Annotated[str, typer.Argument(help="A config file, a graph file or a topology name.", metavar="CONFIG")],
    settings: Settings = None,
    plugin: Plugins = None,
    out: Annotated[Path, typer.Option(help="PNG, SVG or PDF file to write.")] = Path("network.png"),
    rounds: Annotated[
        str | None, typer.Option(help="Draw these rounds of a changing network side by side, e.g. 0-9 or 0,10,20.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Also draw which classes each worker of a config has.")] = None,
) -> None:
    """Draw a network, honest workers in blue and liars in red, and optionally the data of each worker.

    Example: byzmesh draw examples/two-castle.yaml --out castle.svg
    Example: byzmesh draw examples/lossy.yaml --rounds 0-9
    """
    from byzmesh.config.overrides import override, read_config
    from byzmesh.networks import Network
    from byzmesh.plugins import load_plugins

    plugins = load_plugins(plugin or ())
    is_config = source.endswith((".yaml", ".yml"))
    written = read_config(source, settings or ()) if is_config else override({"network": source}, settings or ())
    load_plugins(written.get("plugins") or ())
    network = Network.from_spec(written.get("network"))
    if rounds is not None:
        from byzmesh.networks.processes import Meetings, process
        from byzmesh.networks.processes.drawing import draw_rounds

        shown = _numbers(rounds)
        meetings = Meetings(process(written.get("process")), network.links, network.lies, written.get("seed") or 0)
        typer.echo(f"{draw_rounds(network, meetings, shown, out)}: {len(shown)} rounds of {network.n} workers")
        return
    typer.echo(f"{network.draw(out)}: {network.n} workers, {len(network.byzantine)} of them lying")
    if data is not None:
        from byzmesh.config.overrides import load_config
        from byzmesh.sweeps.build import build

        task = build(load_config(source, settings, plugins)).task
        task.draw(data)
        typer.echo(f"{data}: {task.describe().sum()} samples on {task.rows} workers")


def _numbers(text: str) -> list[int]:
    """The rounds that `0-9` or `0,10,20` names."""
    import re

    from byzmesh.errors import ConfigError

    if not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", text):
        raise ConfigError(f"--rounds must be numbers and ranges like 0-9 or 0,10,20, got {text!r}")
    spans = [part.split("-") for part in text.split(",")]
    return [number for span in spans for number in range(int(span[0]), int(span[-1]) + 1)]
