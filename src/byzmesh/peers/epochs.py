"""Which network file is in force in which round. Pure logic, no I/O.

The operator numbers the files of a run: `epoch`. A file is in force from the round it names, `from_round`, on, until a
newer one is. Files are ordered by epoch and, if an operator signed two files of one epoch, by their hash: whatever the
order in which they arrive, all peers end with the same one.

    in force in round k = the newest file with from_round <= k

A file that is older than another one and not in force before it can never be in force: it is forgotten. So is whatever
is older than the file in force: a peer never goes back, not even to an earlier round's file after a restart.
"""

from __future__ import annotations

import hashlib

from byzmesh.peers.network_file import NetworkFile
from byzmesh.peers.signing import body


def order(file: NetworkFile) -> tuple[int, bytes]:
    """Newer files are larger."""
    return file.epoch, hashlib.sha256(body(file.text)).digest()


class Epochs:
    """The file in force and those that will be, by their order: `from_round` grows with it."""

    def __init__(self, first: NetworkFile) -> None:
        self.files = [first]

    @property
    def tag(self) -> int:
        """32 bits that tell whether two peers know the same files; 0 if files are not signed."""
        together = b"".join(order(file)[1] for file in self.files if file.operator)
        return int.from_bytes(hashlib.sha256(together).digest()[:4], "little") if together else 0

    def add(self, file: NetworkFile) -> bool:
        """Whether the file is new and will be in force some time."""
        if order(file) <= order(self.files[0]):
            return False
        together = {order(known): known for known in (*self.files, file)}
        kept: list[NetworkFile] = []
        for rank in sorted(together, reverse=True):
            if not kept or together[rank].from_round < kept[-1].from_round:
                kept.append(together[rank])
        known, self.files = self.files, kept[::-1]
        return any(kept is file for kept in self.files) and order(file) not in map(order, known)

    def at(self, round: int) -> NetworkFile:
        """The file that is in force in this round, by those known now."""
        return [self.files[0], *(file for file in self.files[1:] if file.from_round <= round)][-1]

    def enter(self, round: int) -> NetworkFile:
        """The file in force in this round; older ones are forgotten."""
        while len(self.files) > 1 and self.files[1].from_round <= round:
            del self.files[0]
        return self.files[0]
