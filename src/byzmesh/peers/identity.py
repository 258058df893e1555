"""Keys: the identity of a peer.

Every peer has an Ed25519 key pair. The secret half stays in a file that only its owner can read; the public half goes
into the network file. Both are written as 64 hexadecimal digits.

    folder/peer3.key      public: ..., secret: ...   mode 0600
    folder/peer3.2.key    the next key of peer 3     after a rotation; the old file may be deleted then
    folder/public.yaml    id: its newest public key  for the network file
"""

from __future__ import annotations

import glob
import re
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from byzmesh.errors import MissingExtra, PeerError
from byzmesh.files import create, write

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


@dataclass(frozen=True)
class Keys:
    """A key pair; the secret half is never shown."""

    public: str
    secret: str = field(repr=False)


def new_keys() -> Keys:
    """A new key pair.

    >>> len(new_keys().public)
    64
    """
    return keys_of(secrets.token_hex(32))


def keys_of(secret: str) -> Keys:
    """The key pair with this secret half."""
    return Keys(private_key(secret).public_key().public_bytes_raw().hex(), secret)


def private_key(secret: str) -> Ed25519PrivateKey:
    """A secret half as the library has it."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError as error:
        raise MissingExtra("peers", "a peer") from error
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(secret))


def public_half(public: str) -> Ed25519PublicKey:
    """A public half as the library has it."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    return Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))


def is_key(text: str) -> bool:
    """Whether the text is half a key: 64 hexadecimal digits.

    >>> is_key(new_keys().public), is_key("x" * 64), is_key("00" * 31)
    (True, False, False)
    """
    return re.fullmatch("[0-9a-f]{64}", text) is not None


def save_keys(path: str | Path, keys: Keys) -> Path:
    """Write a key file with mode 0600; an existing file is never overwritten."""
    path = Path(path)
    warning = "# secret key of a byzmesh peer: never share, never copy into a network file"
    try:
        create(path, f"{warning}\npublic: {keys.public}\nsecret: {keys.secret}\n", mode=0o600)
    except FileExistsError:
        raise PeerError(f"key file {path} already exists; remove it first if its peer needs a new identity") from None
    except OSError as error:
        raise PeerError(f"cannot write key file {path}: {error.strerror}") from error
    return path


def load_keys(path: str | Path) -> Keys:
    """The key pair of a file; refused if others can read it."""
    path = Path(path)
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise PeerError(f"cannot read key file {path}: {error}; make one with byzmesh keygen") from error
    if stat.S_IMODE(mode) & 0o077:
        raise PeerError(f"key file {path} can be read by others (mode {stat.S_IMODE(mode):04o}); chmod 600 it")
    found = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line and not line.startswith("#"))
    public, secret = found.get("public", ""), found.get("secret", "")
    if not (is_key(public) and is_key(secret)):
        raise PeerError(f"{path} is not a key file; make one with byzmesh keygen")
    if keys_of(secret).public != public:
        raise PeerError(f"key file {path} is damaged: its halves do not belong together; make a new one")
    return Keys(public, secret)


class Keyring:
    """The key pairs that a peer may use: those in its key file, and in the files of its other keys beside it.

    peer3.key, peer3.2.key, peer3.3.key, ..., whichever of them is named: the network file says which one is in force.
    The files are read when a key is asked for, so that a new one may be added and an old one deleted while the peer
    runs.
    """

    def __init__(self, keys: Keys | str | Path) -> None:
        self._keys = keys

    @property
    def paths(self) -> list[Path]:
        """The key files that are there; none if the keys were given as such."""
        if isinstance(self._keys, Keys):
            return []
        path = Path(self._keys)
        first = re.sub(r"\.[0-9]+$", "", path.stem)
        beside = {path, path.with_name(f"{first}.key"), *path.parent.glob(f"{glob.escape(first)}.*.key")}
        return sorted(path for path in beside if path.exists())

    def find(self, public: str) -> Keys | None:
        """The key pair with this public half; None if no file has it. `PeerError` if it may be in one that cannot be
        used, or if there is no file at all."""
        if isinstance(self._keys, Keys):
            return self._keys if self._keys.public == public else None
        trouble: PeerError | None = None
        for path in self.paths or [Path(self._keys)]:
            try:
                keys = load_keys(path)
            except PeerError as error:
                trouble = trouble or error
                continue
            if keys.public == public:
                return keys
        if trouble is not None:
            raise trouble
        return None

    def has(self, public: str) -> bool:
        """Whether the key pair with this public half is there and can be used."""
        try:
            return self.find(public) is not None
        except PeerError:
            return False


def keygen(folder: str | Path, peers: int) -> dict[int, str]:
    """Make one key file per peer and public.yaml in `folder`; the public keys by id.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     public = keygen(folder, 2)
    ...     load_keys(Path(folder, "peer1.key")).public == public[1]
    True
    """
    if not 0 < peers < 65535:
        raise PeerError(f"peers must be from 1 to 65534, got {peers}")
    for path in (Path(folder, f"peer{peer}.key") for peer in range(peers)):
        if path.exists():
            raise PeerError(f"key file {path} already exists; make one more key with byzmesh keygen --id")
    public = {peer: _one_more(Path(folder), peer)[1].public for peer in range(peers)}
    _save_public(folder, public)
    return public


def one_more_key(folder: str | Path, peer: int) -> tuple[Path, str]:
    """Make a key of one peer, its first or its next, and note it in public.yaml; the file and the public key.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = keygen(folder, 2)
    ...     one_more_key(folder, 2)[0].name, one_more_key(folder, 1)[0].name, sorted(load_public(folder))
    ('peer2.key', 'peer1.2.key', [0, 1, 2])
    """
    if not 0 <= peer < 65535:
        raise PeerError(f"id must be from 0 to 65534, got {peer}")
    folder = Path(folder)
    known = load_public(folder) if (folder / "public.yaml").exists() else {}
    path, keys = _one_more(folder, peer)
    _save_public(folder, {**known, peer: keys.public})
    return path, keys.public


def _one_more(folder: Path, peer: int) -> tuple[Path, Keys]:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path, keys, count = folder / f"peer{peer}.key", new_keys(), 1
    while path.exists():
        count += 1
        path = folder / f"peer{peer}.{count}.key"
    return save_keys(path, keys), keys


def _save_public(folder: str | Path, public: dict[int, str]) -> None:
    import yaml

    write(Path(folder) / "public.yaml", yaml.safe_dump(public), option="folder")


def load_public(folder: str | Path) -> dict[int, str]:
    """The public keys by id from a folder written by `keygen`."""
    from byzmesh.config.yaml import read_yaml

    path = Path(folder) / "public.yaml"
    content = read_yaml(path, ids=True, way_out="make it with byzmesh keygen")
    for peer, key in content.items():
        if not isinstance(peer, int) or not is_key(str(key)):
            raise PeerError(f"{path} must map ids to public keys, got {peer!r}: {key!r}; make it with byzmesh keygen")
    return content
