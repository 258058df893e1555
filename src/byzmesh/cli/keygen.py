"""`byzmesh keygen`: key pairs of peers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ORDER = 150


def command(
    folder: Annotated[Path, typer.Argument(help="Folder for the key files.", show_default=False)],
    peers: Annotated[int, typer.Option(help="How many key pairs to make.", show_default=False)],
) -> None:
    """Make one CURVE key pair per peer: secret files peer<id>.key (mode 0600) and public.yaml.

    Example: byzmesh keygen keys --peers 12
    """
    from byzmesh.peers.identity import keygen

    keygen(folder, peers)
    typer.echo(f"{peers} key files and public.yaml in {folder}; give each peer its own key file and no other")
