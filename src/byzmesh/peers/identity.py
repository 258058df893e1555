"""Keys: the identity of a peer.

Every peer has a CURVE key pair. The secret half stays in a file that only its owner can read; the public half goes into
the network file. Keys are written in Z85, ZeroMQ's 40-character text form.

    folder/peer3.key      public: ..., secret: ...   mode 0600
    folder/public.yaml    id: public key             for the network file
"""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from byzmesh.errors import MissingExtra, PeerError
from byzmesh.files import create, write


def zeromq() -> ModuleType:
    """The module zmq, or an error that says how to install it."""
    try:
        import zmq
    except ImportError as error:
        raise MissingExtra("peers", "a peer") from error
    module: ModuleType = zmq
    return module


@dataclass(frozen=True)
class Keys:
    """A key pair; the secret half is never shown."""

    public: str
    secret: str = field(repr=False)


def new_keys() -> Keys:
    """A new key pair.

    >>> len(new_keys().public)
    40
    """
    public, secret = zeromq().curve_keypair()
    return Keys(public.decode(), secret.decode())


def is_public_key(text: str) -> bool:
    """Whether the text is a Z85 key: 40 characters that decode to 32 bytes.

    >>> is_public_key(new_keys().public), is_public_key("x" * 39), is_public_key("\\u20ac" * 40)
    (True, False, False)
    """
    from zmq.utils.z85 import decode

    if len(text) != 40 or not text.isascii():
        return False
    try:
        return len(decode(text.encode())) == 32
    except (ValueError, KeyError, IndexError, ArithmeticError, OSError):
        return False


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
    if not (is_public_key(public) and is_public_key(secret)):
        raise PeerError(f"{path} is not a key file; make one with byzmesh keygen")
    if zeromq().curve_public(secret.encode()).decode() != public:
        raise PeerError(f"key file {path} is damaged: its halves do not belong together; make a new one")
    return Keys(public, secret)


def keygen(folder: str | Path, peers: int) -> dict[int, str]:
    """Make one key file per peer and public.yaml in `folder`; the public keys by id.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     public = keygen(folder, 2)
    ...     load_keys(Path(folder, "peer1.key")).public == public[1]
    True
    """
    import yaml

    if not 0 < peers < 65535:
        raise PeerError(f"peers must be from 1 to 65534, got {peers}")
    folder = Path(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    public = {}
    for peer in range(peers):
        keys = new_keys()
        save_keys(folder / f"peer{peer}.key", keys)
        public[peer] = keys.public
    write(folder / "public.yaml", yaml.safe_dump(public), option="folder")
    return public


def load_public(folder: str | Path) -> dict[int, str]:
    """The public keys by id from a folder written by `keygen`."""
    from byzmesh.config.yaml import read_yaml

    path = Path(folder) / "public.yaml"
    content = read_yaml(path, ids=True, way_out="make it with byzmesh keygen")
    for peer, key in content.items():
        if not isinstance(peer, int) or not is_public_key(str(key)):
            raise PeerError(f"{path} must map ids to public keys, got {peer!r}: {key!r}; make it with byzmesh keygen")
    return content
