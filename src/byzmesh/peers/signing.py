"""Signed network files: an operator's Ed25519 key, and a signature as the last line of the file.

    epoch: 3
    ...
    operator: 8f2c...    64 hexadecimal digits, the operator's public key
    signature: 41b9...   128 hexadecimal digits, always the last line

The signature covers every byte before its own line, comments too: a file that was changed by a single space is refused.
A receiver checks the bytes before it reads them as YAML. The operator's secret key is a PEM file (PKCS #8, mode 0600)
that no peer needs; keep it off the peers' machines.
"""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from byzmesh.errors import MissingExtra, PeerError
from byzmesh.files import create

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

LARGEST_FILE = 1 << 18
"""Most bytes of a signed file: peers send it to each other in one frame."""
_PURPOSE = b"byzmesh network file\n"
_LAST_LINE = re.compile(rb"\nsignature: ([0-9a-f]{128})\n\Z")


class NotSigned(PeerError):
    """A file that the operator did not sign as it is."""


def new_operator(path: str | Path) -> str:
    """Write a new operator's key to `path` (mode 0600, never overwritten); its public key.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     public = new_operator(Path(folder, "operator.key"))
    ...     public == public_key(load_operator(Path(folder, "operator.key"))), len(public)
    (True, 64)
    """
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError as error:
        raise MissingExtra("peers", "an operator's key") from error

    key = Ed25519PrivateKey.generate()
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    try:
        Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        create(path, text, mode=0o600)
    except FileExistsError:
        raise PeerError(f"operator's key {path} already exists; networks signed with it need it") from None
    except OSError as error:
        raise PeerError(f"cannot write operator's key {path}: {error.strerror}") from error
    return public_key(key)


def load_operator(path: str | Path) -> Ed25519PrivateKey:
    """The operator's key in a PEM file; refused if others can read it."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError as error:
        raise MissingExtra("peers", "an operator's key") from error

    path = Path(path)
    try:
        mode, text = stat.S_IMODE(path.stat().st_mode), path.read_bytes()
    except OSError as error:
        raise PeerError(f"cannot read operator's key {path}: {error.strerror}; byzmesh keygen makes one") from error
    if mode & 0o077:
        raise PeerError(f"operator's key {path} can be read by others (mode {mode:04o}); chmod 600 it")
    try:
        key = serialization.load_pem_private_key(text, None)
    except (ValueError, TypeError) as error:
        raise PeerError(f"{path} is no unencrypted key in PEM; make one with byzmesh keygen --operator") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise PeerError(f"{path} is a key of another kind than Ed25519; make one with byzmesh keygen --operator")
    return key


def public_key(key: Ed25519PrivateKey) -> str:
    """The public half, as in `operator` of a network file."""
    return key.public_key().public_bytes_raw().hex()


def body(text: bytes) -> bytes:
    """What the signature covers: all before the last line, or everything if that is no signature.

    >>> body(b"epoch: 1\\n"), body(b"epoch: 1\\nsignature: " + b"0" * 128 + b"\\n")
    (b'epoch: 1\\n', b'epoch: 1\\n')
    """
    found = _LAST_LINE.search(text)
    return text if found is None else text[: found.start() + 1]


def sign(text: bytes, key: Ed25519PrivateKey) -> bytes:
    """The text with a signature as its last line; a former signature is replaced."""
    covered = body(text)
    if not covered.endswith(b"\n"):
        covered += b"\n"
    signed = covered + b"signature: " + key.sign(_PURPOSE + covered).hex().encode() + b"\n"
    if len(signed) > LARGEST_FILE:
        raise PeerError(
            f"a signed network file must have at most {LARGEST_FILE} bytes, got {len(signed)}; name a topology "
            "instead of its edges"
        )
    return signed


def verify(text: bytes, operator: str) -> None:
    """Raise `NotSigned` unless the operator signed exactly this text."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        raise MissingExtra("peers", "a signed network file") from error

    found = _LAST_LINE.search(text) if len(text) <= LARGEST_FILE else None
    if found is None:
        raise NotSigned("network file names an operator and is not signed; sign it with byzmesh peers sign")
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(operator))
        key.verify(bytes.fromhex(found[1].decode()), _PURPOSE + text[: found.start() + 1])
    except (InvalidSignature, ValueError):
        raise NotSigned(
            "network file has a signature that is not its operator's: it was changed, or somebody else signed it"
        ) from None
