"""What an operator does: write the next network file of a run, and sign it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byzmesh.config.yaml import parse_yaml
from byzmesh.errors import ConfigError
from byzmesh.files import write
from byzmesh.peers.network_file import NetworkFile, load_network, network_file
from byzmesh.peers.signing import body, load_operator, public_key, sign


@dataclass(frozen=True)
class NewPeer:
    """A peer to add: where it listens, its key, whom it is linked to, and which part of the data it gets."""

    address: str
    public_key: str
    links: Collection[int]
    share: int | None = None


def changed(
    file: NetworkFile,
    from_round: int,
    *,
    add: Mapping[int, NewPeer] | None = None,
    remove: Collection[int] = (),
    keys: Mapping[int, str] | None = None,
    addresses: Mapping[int, str] | None = None,
    f: int | None = None,
) -> NetworkFile:
    """The next epoch of a file, not signed yet.

    from_round  the round from which on it is in force
    keys        peer -> its new public key
    addresses   peer -> where it will listen
    f           the bound of every peer (default: as it was; a new peer gets the largest)
    """
    add, keys, addresses = add or {}, keys or {}, addresses or {}
    for peer in (*remove, *keys, *addresses):
        file.node(peer)
    for peer in add:
        if peer in file.ids:
            raise ConfigError(f"peer {peer} is a member already; a new peer needs another id")
    content = _content(file)
    entries = {entry["id"]: dict(entry) for entry in content["peers"] if entry["id"] not in remove}
    for peer, new in add.items():
        share = peer % file.parts if new.share is None else new.share
        entries[peer] = {"id": peer, "address": new.address, "public_key": new.public_key, "share": share}
    for peer, key in keys.items():
        entries[peer]["public_key"] = key
    for peer, address in addresses.items():
        entries[peer]["address"] = address
    if add or remove:
        if not isinstance(file.weights, str):
            raise ConfigError("weights of this file are a matrix: write the next file by hand, with one of its size")
        content |= {"edges": _edges(file, add, remove), "shares": file.parts}
        content.pop("topology", None)
    if f is not None:
        content["f"] = f
    elif isinstance(file.f, dict):
        content["f"] = {peer: file.f.get(peer, max(file.f.values())) for peer in sorted(entries)}
    content |= {"epoch": file.epoch + 1, "from_round": from_round, "peers": [entries[peer] for peer in sorted(entries)]}
    return network_file(content, file.folder)


def _content(file: NetworkFile) -> dict[str, Any]:
    content = file.model_dump(mode="json", exclude_unset=True, exclude={"signature"})
    if isinstance(file.f, dict):
        content["f"] = file.f
    return content


def _edges(file: NetworkFile, add: Mapping[int, NewPeer], remove: Collection[int]) -> list[list[int]]:
    """The links that stay, and those of the new peers, by ids."""
    stay = [[file.ids[a], file.ids[b]] for a, b in file.network.links.edges().tolist()]
    stay = [link for link in stay if not set(link) & set(remove)]
    for peer, new in add.items():
        if not new.links:
            raise ConfigError(f"peer {peer} must be linked to somebody; give the ids of its neighbours")
        stay += [sorted((peer, other)) for other in sorted(set(new.links))]
    return [list(link) for link in sorted({tuple(link) for link in stay})]


def sign_file(path: str | Path, key: str | Path, after: str | Path | None = None) -> NetworkFile:
    """Check a network file, and sign it with the operator's key in place.

    after  the file that it follows; needed from epoch 1 on, to refuse what running peers would refuse
    """
    path, operator = Path(path), load_operator(key)
    try:
        text = body(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}; give the path of a network file") from error
    content = parse_yaml(text.decode(errors="replace"), ids=True, where=str(path))
    mine = public_key(operator)
    if "operator" not in content:
        text = text.rstrip(b"\n") + f"\noperator: {mine}\n".encode()
        content["operator"] = mine
    if content["operator"] != mine:
        raise ConfigError(f"{path} names the operator {content['operator']}, but the key is that of {mine}")
    file = network_file(content, path.parent)
    if file.epoch > 0 and after is None:
        raise ConfigError(f"epoch {file.epoch} follows another file: give that with --after")
    if after is not None:
        check_succession(load_network(after), file)
    write(path, sign(text, operator), option="path")
    return load_network(path)


def check_succession(former: NetworkFile, file: NetworkFile) -> None:
    """Raise `ConfigError` if peers that run the former file would refuse this one."""
    if file.epoch <= former.epoch:
        raise ConfigError(f"epoch must be above {former.epoch}, that of the former file, got {file.epoch}")
    if file.run != former.run:
        raise ConfigError(
            "the file differs from the former one in more than its members (peers, topology, edges, weights, f): "
            "that is a new run"
        )
    if file.from_round > former.rounds:
        raise ConfigError(
            f"from_round must be at most {former.rounds}, where the former file's rounds end, got {file.from_round}"
        )
    for peer in sorted(set(file.ids) & set(former.ids)):
        if file.share(peer) != former.share(peer):
            raise ConfigError(f"share of peer {peer} must stay {former.share(peer)}, got {file.share(peer)}")
