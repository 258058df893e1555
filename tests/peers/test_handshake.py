"""The handshake: only whoever has the secret half of a pinned key gets in, and gets nothing else than a fresh key."""

from __future__ import annotations

import contextlib
import hashlib
import socket
import ssl
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from byzmesh.peers.certificates import certificate, contexts
from byzmesh.peers.handshake import CHUNK, KEY, Handshake, Opened, Refused
from byzmesh.peers.identity import Keys, keys_of, new_keys, private_key

GREETING = b"byzmesh2"
VICTIM, MEMBER = new_keys(), new_keys()
TRUST = contexts(VICTIM, [certificate(MEMBER.public)])


class Raw:
    """The other end of a handshake, which says through TLS what it likes."""

    def __init__(
        self, link: socket.socket, context: ssl.SSLContext, server: bool, session: ssl.SSLSession | None = None
    ):
        self.link, self.into, self.out = link, ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.into, self.out, server_side=server, session=session)
        self.proved = False

    def go_on(self, say: bytes = b"") -> None:
        """One step; when the handshake is over, `say` goes through TLS."""
        with contextlib.suppress(BlockingIOError):
            self.into.write(self.link.recv(CHUNK))
        try:
            if not self.proved:
                self.tls.do_handshake()
                self.proved = True
                if say:
                    self.tls.write(say)
            else:
                self.tls.read(1000)
        except ssl.SSLWantReadError:
            pass
        self.link.sendall(self.out.read())


def meet(raw: Callable[[socket.socket], Raw], accepted: bool, say: bytes = b"", after: bytes = b"") -> Opened:
    """The victim's handshake with somebody; `Refused` if it ends it. `after` follows on the bare connection."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        handshake = Handshake(ours, TRUST[accepted], accepted)
        other, opened = raw(theirs), None
        if not accepted:
            handshake.go_on()
        for _ in range(20):
            was = other.proved
            try:
                other.go_on(say)
            except ssl.SSLError as error:
                raise AssertionError(f"the victim is refused: {error}") from error
            if other.proved and not was:
                theirs.sendall(after)
            opened = handshake.read()
            if opened is not None:
                if not say:
                    other.go_on()
                return opened
    raise AssertionError("no end")


def identity(
    folder: Path, accepted: bool, subject: Keys, issuer: str, signer: Keys, chain: bytes = b"", serial: int = 2
) -> ssl.SSLContext:
    """For somebody who trusts everybody and shows a certificate of its own making."""

    def name(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    builder = x509.CertificateBuilder().subject_name(name("byzmesh peer")).issuer_name(name(issuer))
    builder = builder.public_key(private_key(subject.secret).public_key()).serial_number(serial)
    builder = builder.not_valid_before(datetime(2000, 1, 1)).not_valid_after(datetime(2200, 1, 1))
    made = builder.sign(private_key(signer.secret), None).public_bytes(Encoding.PEM)
    secret = private_key(subject.secret).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path = folder / "identity.pem"
    path.write_bytes(made + chain + secret)
    context = trusting(accepted)
    context.load_cert_chain(path)
    return context


def trusting(client: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT if client else ssl.PROTOCOL_TLS_SERVER)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def forger(kind: str, folder: Path, accepted: bool) -> ssl.SSLContext:
    stranger, nobody = new_keys(), keys_of("00" * 32)
    member = ssl.DER_cert_to_PEM_cert(certificate(MEMBER.public)).encode()
    if kind == "its own":
        return identity(folder, accepted, stranger, "byzmesh peer", stranger)
    if kind == "signed as all are":
        return identity(folder, accepted, stranger, "byzmesh", nobody, serial=1)
    if kind == "signed by a member":
        return identity(folder, accepted, stranger, "byzmesh peer", MEMBER, member)
    if kind == "a member's key in another one":
        return identity(folder, accepted, MEMBER, "byzmesh", nobody)
    if kind == "none":
        return trusting(accepted)
    context = contexts(MEMBER, [certificate(VICTIM.public)])[0]
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


FORGED = ["its own", "signed as all are", "signed by a member", "a member's key in another one"]


@pytest.mark.parametrize(
    ("kind", "accepted"),
    [*((kind, accepted) for kind in FORGED for accepted in (True, False)), ("none", True), ("TLS 1.2", True)],
)
def test_no_other_certificate_is_taken(tmp_path: Path, kind: str, accepted: bool) -> None:
    """Whether the forger dials or is dialled. Whoever signed it plays no part: not even a member can vouch."""
    context = forger(kind, tmp_path, accepted)
    with pytest.raises(Refused, match="no handshake" if kind == "TLS 1.2" else "key is no neighbour's"):
        meet(lambda link: Raw(link, context, not accepted), accepted, GREETING + bytes(KEY))


def member(server: bool) -> Callable[[socket.socket], Raw]:
    return lambda link: Raw(link, contexts(MEMBER, [certificate(VICTIM.public)])[server], server)


def test_a_member_is_taken() -> None:
    """Both ways; whoever is dialled says the key."""
    assert meet(member(False), True).certificate == certificate(MEMBER.public)
    said = bytes(range(KEY))
    opened = meet(member(True), False, GREETING + said, after=b"frames")
    assert (opened.key, opened.begun) == (said, b"frames")
    assert opened.key.hex() not in repr(opened) and repr(opened.key) not in repr(opened)


def test_frames_that_come_with_the_greeting_have_room() -> None:
    """As much as is read at once."""
    opened = meet(member(True), False, GREETING + bytes(KEY), after=bytes(3 * CHUNK))
    assert 0 < len(opened.begun) < CHUNK


@pytest.mark.parametrize("greeting", [b"byzmesh1" + bytes(KEY), GREETING + bytes(KEY - 1)], ids=["other", "short"])
def test_a_member_with_another_greeting_is_refused(greeting: bytes) -> None:
    with pytest.raises(Refused, match="greeting"):
        meet(member(True), False, greeting)


def test_no_session_is_resumed() -> None:
    """A former handshake is worth nothing: not after the key was shut out either."""
    context, raws = contexts(MEMBER, [certificate(VICTIM.public)])[0], list[Raw]()

    def dial(link: socket.socket) -> Raw:
        raws.append(Raw(link, context, False, raws[-1].tls.session if raws else None))
        return raws[-1]

    keys = {meet(dial, True).key for _ in range(2)}
    assert len(keys) == 2 and not any(raw.tls.session_reused for raw in raws)
    assert not any(raw.tls.session is not None and raw.tls.session.has_ticket for raw in raws)


def test_a_handshake_has_a_largest_size() -> None:
    """A hello of a hundred thousand bytes that never ends."""
    hello = b"\x01" + (100_000).to_bytes(3, "big") + bytes(12_000)
    record = b"\x16\x03\x01" + len(hello).to_bytes(2, "big") + hello
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        handshake = Handshake(ours, contexts(VICTIM, [])[1], True)
        theirs.sendall(record)
        assert handshake.read() is None
        with pytest.raises(Refused, match="too much"):
            handshake.read()


def test_certificates_are_the_same_everywhere_and_for_ever() -> None:
    """Peers compare them: another release, or version of a library, must make the same bytes, whatever the clock."""
    made = certificate(keys_of("01" * 32).public)
    assert hashlib.sha256(made).hexdigest() == "4fbacb1c2470b7f88fb39a83052420f99c9b1dfb979f7c331b4bd22ba771ba25"
    read = x509.load_der_x509_certificate(made)
    assert read.not_valid_before_utc.year < 1970 and read.not_valid_after_utc.year == 9999
