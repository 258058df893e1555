"""`byzmesh peers sign` and `byzmesh peers change`: members that change while peers run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from byzmesh.cli._options import names
from byzmesh.errors import ConfigError


def sign(
    network: Annotated[Path, typer.Argument(help="Network file, signed in place.", show_default=False)],
    key: Annotated[Path, typer.Option(help="The operator's key file.", show_default=False)],
    after: Annotated[Path | None, typer.Option(help="The signed file that it follows; from epoch 1 on.")] = None,
) -> None:
    """Sign a network file with the operator's key, so that its members may change while peers run.

    Example: byzmesh peers sign network.yaml --key keys/operator.key
    """
    from byzmesh.peers.changes import sign_file

    file = sign_file(network, key, after)
    typer.echo(f"{network}: epoch {file.epoch}, {len(file.peers)} peers, signed by operator {file.operator}")


def change(
    network: Annotated[Path, typer.Argument(help="The signed network file to start from.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The next network file, to be signed.", show_default=False)],
    from_round: Annotated[
        int, typer.Option(help="Round from which on it is in force; 0: as soon as a peer gets it.", show_default=False)
    ],
    add: Annotated[str | None, typer.Option(help="Add a peer: ID=HOST:PORT.")] = None,
    links: Annotated[str, typer.Option(help="Ids of the added peer's neighbours, e.g. 0,1,2.")] = "",
    share: Annotated[int | None, typer.Option(help="The added peer's part of the data.")] = None,
    remove: Annotated[str, typer.Option(help="Ids of peers to remove.")] = "",
    new_key: Annotated[str, typer.Option(help="Ids of peers whose key is replaced by their newest in --keys.")] = "",
    move: Annotated[list[str] | None, typer.Option(help="Another address of a peer: ID=HOST:PORT.")] = None,
    f: Annotated[int | None, typer.Option(help="Bound on lying neighbours, of every peer.")] = None,
    keys: Annotated[Path | None, typer.Option(help="Folder with public.yaml, for --add and --new-key.")] = None,
) -> None:
    """Write the next network file of a run: peers added, removed or moved, keys replaced, another f.

    Example: byzmesh peers change network.yaml --out next.yaml --from-round 900 --new-key 3 --keys keys
    """
    from byzmesh.peers.changes import NewPeer, changed
    from byzmesh.peers.identity import load_public
    from byzmesh.peers.network_file import load_network, save_network

    if out.exists():
        raise ConfigError(f"{out} exists; give another --out")
    public = {} if keys is None else load_public(keys)
    added = dict(map(parse_place, [add] if add else []))
    wanted = parse_ids(new_key, "--new-key")
    for peer in (*added, *wanted):
        if peer not in public:
            raise ConfigError(f"no key of peer {peer} in --keys; make one with byzmesh keygen FOLDER --id {peer}")
    near = parse_ids(links, "--links")
    file = changed(
        load_network(network),
        from_round,
        add={peer: NewPeer(where, public[peer], near, share) for peer, where in added.items()},
        remove=parse_ids(remove, "--remove"),
        keys={peer: public[peer] for peer in wanted},
        addresses=dict(map(parse_place, move or [])),
        f=f,
    )
    save_network(file, out)
    typer.echo(f"{out}: epoch {file.epoch} from round {file.from_round} on, {len(file.peers)} peers; sign it next")


def parse_place(text: str) -> tuple[int, str]:
    """Read ID=HOST:PORT.

    >>> parse_place("12=127.0.0.1:7012")
    (12, '127.0.0.1:7012')
    """
    peer, equals, address = text.partition("=")
    if not equals or not peer.isdigit():
        raise ConfigError(f"a peer's address must be ID=HOST:PORT, e.g. 12=10.0.0.13:7000, got {text!r}")
    return int(peer), address


def parse_ids(text: str, option: str = "--byzantine") -> list[int]:
    """Read peer ids separated by commas.

    >>> parse_ids("7,9")
    [7, 9]
    """
    words = names(text)
    for word in words:
        if not word.isdigit():
            raise ConfigError(f"{option} must be ids separated by commas, e.g. 7,9, got {word!r}")
    return [int(word) for word in words]
