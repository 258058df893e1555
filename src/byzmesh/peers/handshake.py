"""The handshake of a link: TLS 1.3, in which both ends prove their keys, and through it the key of the link.

The end that accepted the connection is the one that will send. It draws a fresh key and says it to the other through
TLS; nothing more goes through TLS. What follows on the connection are frames (frames.py) under that key.
"""

from __future__ import annotations

import os
import socket
import ssl
from dataclasses import dataclass, field

KEY = 32
"""Bytes of a link's key."""
CHUNK = 1 << 14
"""Bytes read at once."""
_GREETING = b"byzmesh2"
_LONGEST = 1 << 13
"""Bytes of a whole handshake: four times what one takes."""


class Refused(Exception):
    """The other end is nobody we know, or talks something else."""


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A connection whose other end is known."""

    link: socket.socket
    certificate: bytes
    """Of the other end."""
    key: bytes = field(repr=False)
    accepted: bool
    """Whether the other end opened the connection, to listen to us."""
    begun: bytes = b""
    """What has been read of the first frames."""


class Handshake:
    """One end of a handshake, on a socket that does not block."""

    def __init__(self, link: socket.socket, context: ssl.SSLContext, accepted: bool) -> None:
        self.link, self._context, self._accepted = link, context, accepted
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None
        self._proved = False
        self._key = b""
        self._read = 0

    def read(self) -> Opened | None:
        """Go on with what arrived; what it led to, if it is over. `Refused` or `OSError` if it failed."""
        if self._read >= _LONGEST:
            raise Refused("talks too much")
        try:  # the first frames may be there already, if it is us who will listen
            data = self.link.recv(_LONGEST if self._accepted else CHUNK)
        except BlockingIOError:
            return None
        if not data:
            raise Refused("ended")
        self._read += len(data)
        self._in.write(data)
        return self.go_on()

    def go_on(self) -> Opened | None:
        """Say what there is to say."""
        try:
            done = self._step()
        except ssl.SSLWantReadError:
            done = False
        except ssl.SSLError as error:
            self._say()
            raise Refused("key is no neighbour's" if _key_refused(error) else "no handshake") from error
        self._say()
        if not done:
            return None
        return Opened(
            link=self.link,
            certificate=self._other,
            key=self._key,
            accepted=self._accepted,
            begun=self._in.read(),
        )

    @property
    def begun(self) -> bool:
        """Whether anything was said: before that, a handshake takes next to no memory."""
        return self._tls is not None

    def _step(self) -> bool:
        if self._tls is None:
            self._tls = self._context.wrap_bio(self._in, self._out, server_side=self._accepted)
        tls = self._tls
        if not self._proved:
            tls.do_handshake()
            self._proved = True
            self._other = tls.getpeercert(binary_form=True) or b""
            if self._accepted:
                self._key = os.urandom(KEY)
                tls.write(_GREETING + self._key)
        if not self._accepted:
            said = tls.read(len(_GREETING) + KEY)
            if len(said) != len(_GREETING) + KEY or not said.startswith(_GREETING):
                raise Refused("no greeting")
            self._key = said[len(_GREETING) :]
        return True

    def _say(self) -> None:
        data = self._out.read()
        if data and self.link.send(data) != len(data):  # what the system cannot take of a new connection is no answer
            raise Refused("does not listen")


def _key_refused(error: ssl.SSLError) -> bool:
    """Whether the handshake failed for want of a key that we, or the other end, know."""
    reason = str(error.reason or "")
    return "CERTIFICATE" in reason or "UNKNOWN_CA" in reason
