"""Certificates that say nothing but a public key, and TLS contexts that trust exactly those of the neighbours.

Python's `ssl` asks for certificates where a pinned key would do. So a peer's certificate is a function of its public
key: all else in it is the same for everybody and for ever, also the key that signs it, which is no secret. Each peer
makes the certificates of its neighbours from the keys in the network file and trusts these and nothing else; whoever
shows one proves in the handshake that it has the secret half. Who signed it plays no part.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache

from byzmesh.peers.identity import Keys, private_key, public_half

_SIGNER = "00" * 32
_BEGIN, _END = datetime(1950, 1, 1), datetime(9999, 12, 31)  # whatever a machine's clock says


@lru_cache(maxsize=4096)
def certificate(public: str) -> bytes:
    """The certificate (DER) of whoever has this public key."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509.oid import NameOID

    def name(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    builder = x509.CertificateBuilder().subject_name(name("byzmesh peer")).issuer_name(name("byzmesh"))
    builder = builder.public_key(public_half(public)).serial_number(1).not_valid_before(_BEGIN).not_valid_after(_END)
    return builder.sign(private_key(_SIGNER), None).public_bytes(Encoding.DER)


def contexts(keys: Keys, trusted: Iterable[bytes]) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """For connections that a peer opens, and for those that it accepts: TLS 1.3, with these certificates only."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made[1].num_tickets = 0  # nothing but frames follows a handshake
    everybody = b"".join(trusted)
    with _Identity(keys) as path:
        for context in made:
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.check_hostname = False
            context.verify_mode = ssl.CERT_REQUIRED
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            context.load_cert_chain(path)
            if everybody:
                context.load_verify_locations(cadata=everybody)
    return made


class _Identity:
    """A file with certificate and secret key, as `ssl` wants it; in memory where the system allows."""

    def __init__(self, keys: Keys) -> None:
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        secret = private_key(keys.secret).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        self._text = ssl.DER_cert_to_PEM_cert(certificate(keys.public)).encode() + secret

    def __enter__(self) -> str:
        if hasattr(os, "memfd_create"):
            self._handle, self._path = os.memfd_create("byzmesh"), None
            path = f"/proc/self/fd/{self._handle}"
        else:
            self._handle, self._path = tempfile.mkstemp()  # mode 0600
            path = self._path
        os.write(self._handle, self._text)
        return path

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)
        if self._path is not None:
            os.unlink(self._path)
