"""`byzmesh show`: the fully resolved config."""

from __future__ import annotations

import typer

from byzmesh.cli._options import Config, Json, Plugins, Settings

ORDER = 20


def command(
    config: Config,
    settings: Settings = None,
    plugin: Plugins = None,
    as_json: Json = False,
) -> None:
    """Print the config with every default written out.

    Example: byzmesh show examples/paper-two-castle.yaml --set rule=cc
    """
    import json

    import yaml

    from byzmesh.config.overrides import load_config
    from byzmesh.plugins import load_plugins

    resolved = load_config(config, settings, load_plugins(plugin or ()))
    typer.echo(json.dumps(resolved, indent=2) if as_json else yaml.safe_dump(resolved, sort_keys=False).rstrip())
