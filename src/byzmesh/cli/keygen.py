"""`byzmesh keygen`: key pairs of peers, and of an operator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from byzmesh.errors import ConfigError

ORDER = 150


def command(
    folder: Annotated[Path, typer.Argument(help="Folder for the key files.", show_default=False)],
    peers: Annotated[int | None, typer.Option(help="How many key pairs to make, for ids from 0.")] = None,
    id: Annotated[int | None, typer.Option("--id", help="Make one more key, for this peer.")] = None,
    operator: Annotated[
        bool, typer.Option("--operator", help="Make the key that signs network files: operator.key.")
    ] = False,
) -> None:
    """Make one key pair per peer: secret files peer<id>.key (mode 0600) and public.yaml.

    A peer that has a key gets its next one: peer3.2.key.

    Example: byzmesh keygen keys --peers 12
    """
    from byzmesh.peers.identity import keygen, one_more_key
    from byzmesh.peers.signing import new_operator

    if (peers is not None) + (id is not None) + operator != 1:
        raise ConfigError("keygen makes one kind of key at a time: give one of --peers, --id and --operator")
    if operator:
        path = folder / "operator.key"
        public = new_operator(path)
        typer.echo(f"{path}: operator {public}; it signs network files, keep it off the peers' machines")
    elif id is not None:
        path, public = one_more_key(folder, id)
        typer.echo(f"{path}: key of peer {id}, public key {public}; noted in {folder / 'public.yaml'}")
    else:
        keygen(folder, peers or 0)
        typer.echo(f"{peers} key files and public.yaml in {folder}; give each peer its own key file and no other")
