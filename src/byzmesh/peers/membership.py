"""Members that change while training goes on: a peer's signed network files, from its neighbours and from disk.

Every message says, by a hash, which files its sender knows (`tag`). Whoever hears another hash than its own sends what
it knows, so a file that one peer has soon reaches all. A file counts only if the operator signed these very bytes,
if it belongs to this run, and if it is newer than the one in force; then it is kept on disk (`byzmesh.peers.shelf`) and
is in force from the round that it names (`byzmesh.peers.epochs`). The network file that was given to the peer is looked
at again every second, so that a newer one may replace it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from stat import S_ISREG

from byzmesh.errors import ByzmeshError, ConfigError, PeerError
from byzmesh.peers.epochs import Epochs, order
from byzmesh.peers.identity import Keyring, Keys
from byzmesh.peers.logs import Log
from byzmesh.peers.network_file import NetworkFile, load_network, signed_network
from byzmesh.peers.peer import Peer
from byzmesh.peers.shelf import Shelf
from byzmesh.peers.signing import LARGEST_FILE, NotSigned
from byzmesh.peers.trials import Trials
from byzmesh.peers.wire import HEADER, WireError, encode_file

LOOK = 1.0
"""Seconds between two looks at the file on disk."""
TELL, LONGEST_TELL = 1.0, 60.0
"""Seconds until a neighbour that still knows another file is told again: twice as long each time, up to a minute."""
HEAR, HEARD_AT_ONCE = 1.0, 8.0
"""How many files a neighbour may send: one per second, and so many at once. Checking a signature costs time."""


class Removed(PeerError):
    """This peer is no longer a member."""

    exit_code = 0


class Membership:
    """The network files that one peer knows.

    file  the file in force; it changes in `enter` only
    keys  the peer's keys by that file
    """

    def __init__(
        self,
        first: NetworkFile,
        me: int,
        keyring: Keyring,
        now: Callable[[], float],
        log: Log,
        *,
        path: str | Path | None = None,
        out: str | Path | None = None,
    ) -> None:
        self.me, self.keyring, self._now, self._log = me, keyring, now, log
        self._path = None if path is None else Path(path)
        self._shelf = Shelf(out, me, log)
        if first.operator and not first.text:
            raise NotSigned("network file names an operator and is not signed; sign it with byzmesh peers sign")
        self.operator, self.run, self._folder = first.operator, first.run, first.folder
        self.epochs = self._shelf.read(first) if first.operator else Epochs(first)
        self._share = first.share(me) if me in first.ids else None
        self._seen: tuple[int, ...] = ()  # the first look always reads: it may have changed since `first` was read
        self._looked = now()
        self._told: dict[int, tuple[float, float, int]] = {}
        self._credit: dict[int, tuple[float, float]] = {}
        self._judged = {hash(first.text)}  # of the operator's files only, so it stays small
        self._rivals: set[tuple[int, bytes]] = set()  # files of one epoch: each is logged once, however often it comes
        self.unsaved = bool(self.operator)
        """Whether a checkpoint is due because a file was taken up."""
        if me in first.ids and not any(me in file.ids for file in self.epochs.files):
            raise Removed(
                f"peer {me} is not a member from epoch {self.epochs.files[0].epoch} on, by the network file in its "
                "--out; for another run, choose another --out"
            )
        while me not in self.epochs.files[0].ids and len(self.epochs.files) > 1:
            del self.epochs.files[0]  # it was a member before, and will be again
        self.file = self.epochs.files[0]
        self.tag = self.epochs.tag
        self.keys = self._own_keys(self.file)
        self._trials = Trials()
        self.followed = self.file
        """The file by which it listens: the one in force or, on trial, a later one."""

    def keep(self) -> None:
        """Have on disk what is known; first called when the folder is known to be this run's."""
        if self.operator:
            self._shelf.keep(self.epochs.files)

    def largest(self, size: int) -> int:
        """Bytes of the largest frame, if messages have this size."""
        return max(size, LARGEST_FILE + HEADER.size) if self.operator else size

    def enter(self, peer: Peer, round: int) -> None:
        """A round begins: take up the file that is in force in it."""
        if not self.operator:
            return
        if self._now() - self._looked >= LOOK:
            self.look()
        file = self.epochs.enter(round)
        if file is not self.file:
            self._take_up(peer, file, round)
        elif len(self.epochs.files) > 1 or self.followed is not file:
            self._look_for_others(peer, round)

    def _take_up(self, peer: Peer, file: NetworkFile, round: int) -> None:
        me = self.me
        peer.pump(0.0)  # nothing is sent to whoever joined and is not known yet
        if me not in file.ids:
            self._send(peer, file, peer.remotes)  # nobody else may have it
            raise Removed(f"peer {me} is not a member from epoch {file.epoch} on")
        keys, remotes = self._own_keys(file), file.remotes(me)
        anew = (keys, file.entry(me).address) != (self.keys, self.file.entry(me).address)
        known = {neighbour: remote.public_key for neighbour, remote in remotes.items()}
        # whoever is left behind could not be told later: those who know another key or address of this peer, and
        # those whose own key this peer does not hear any more
        self._send(peer, file, [j for j, remote in peer.remotes.items() if anew or known.get(j) != remote.public_key])
        self.file, self.keys, self.tag = file, keys, self.epochs.tag
        self._follow(peer, file, keys)
        peer.total = file.rounds
        self._told.clear()
        self.keep()
        self.unsaved = True
        self._log("epoch in force", epoch=file.epoch, round=round, from_round=file.from_round, peers=len(file.peers))

    def _send(self, peer: Peer, file: NetworkFile, whom: Iterable[int]) -> None:
        for neighbour in whom:
            peer.transport.send(encode_file(file.text, peer.form.run, self.me, neighbour))

    def _look_for_others(self, peer: Peer, round: int) -> None:
        """Try a later file if at most f neighbours are heard by the one in force; after a trial, go back to that."""
        now, rounds, trying = self._now(), peer.rounds, self.followed is not self.file
        # with f neighbours or fewer nothing that they say is certain: a trial could not tell anything
        deaf = len(peer.neighbours) > rounds.f >= sum(rounds.lively(j, now) for j in peer.neighbours)
        number = self._trials.due(deaf=deaf, trying=trying)
        others = [] if number is None else self._others()
        if number is not None and others:
            file, keys = others[number % len(others)]
            self._log("epoch tried", epoch=file.epoch, round=round, from_round=file.from_round)
            self._follow(peer, file, keys)
        elif trying:
            self._follow(peer, self.file, self.keys)

    def _others(self) -> list[tuple[NetworkFile, Keys]]:
        """The later files by which this peer has other links, and its keys by them."""
        me, found = self.me, []
        mine = self.file.entry(me).public_key, self.file.remotes(me)
        for file in self.epochs.files[1:]:
            if me in file.ids and (file.entry(me).public_key, file.remotes(me)) != mine and self._has_key(file):
                found.append((file, self._own_keys(file)))
        return found

    def _follow(self, peer: Peer, file: NetworkFile, keys: Keys) -> None:
        """Listen and speak by a file: the one in force or, on trial, a later one.

        On trial the peer stays where it listens, and liars count as the more cautious of the two files says: that there
        are fewer of them may be true only from the later one's round on.
        """
        me, remotes, f = self.me, file.remotes(self.me), max(file.bound(self.me), self.file.bound(self.me))
        strange = {j for j in remotes if j not in peer.remotes or peer.remotes[j].public_key != remotes[j].public_key}
        peer.rounds.change(remotes, f, self.file.patience, strange, self._now())
        peer.transport.change(self.file.entry(me).address, keys, remotes)
        peer.change(remotes, file.weights_of(me), f, strange)
        self.followed = file

    def _has_key(self, file: NetworkFile) -> bool:
        return self.me not in file.ids or self.keyring.has(file.entry(self.me).public_key)

    def _own_keys(self, file: NetworkFile) -> Keys:
        keys = self.keyring.find(file.entry(self.me).public_key)
        if keys is None:
            raise PeerError(
                f"the key file is not peer {self.me}'s: its public key is not the one in the network file of epoch "
                f"{file.epoch}; put the file with that key beside it, e.g. as peer{self.me}.2.key"
            )
        return keys

    def receive(self, text: bytes, neighbour: int) -> None:
        """A neighbour sent a file; `WireError` if an honest one would not have sent it."""
        now = self._now()
        credit, since = self._credit.get(neighbour, (HEARD_AT_ONCE, now))
        credit = min(HEARD_AT_ONCE, credit + (now - since) / HEAR)
        self._credit[neighbour] = max(0.0, credit - 1.0), now
        if credit < 1.0 or not self.operator:
            raise WireError("file", f"neighbour {neighbour} sends more network files than one per {HEAR:g} s")
        if hash(text) in self._judged:
            return
        try:
            file = signed_network(text, self.operator, self._folder)
            self._judged.add(hash(text))
            self.offer(file, neighbour=neighbour)
        except ByzmeshError as error:
            raise WireError("file", str(error)) from error

    def look(self) -> None:
        """Read the file on disk if it changed; one that does not count is logged and left alone."""
        self._looked = self._now()
        state = self._state_of_disk()
        if state == self._seen or self._path is None:
            return
        self._seen = state
        try:
            found = self._path.stat()  # a pipe could be waited for without end, and so could a disk of nonsense
            if not S_ISREG(found.st_mode) or found.st_size > LARGEST_FILE:
                raise ConfigError(f"it is no regular file of at most {LARGEST_FILE} bytes")
            file = load_network(self._path)
            if file.operator != self.operator:
                raise NotSigned(f"it is not signed by this run's operator {self.operator}")
            self.offer(file, path=str(self._path))
        except Exception as error:  # nothing that somebody writes there may end the peer
            self._log("refused", reason="file", path=str(self._path), text=str(error))

    def _state_of_disk(self) -> tuple[int, ...]:
        try:
            found = self._path.stat() if self._path is not None else None
        except OSError:
            found = None
        return () if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)

    def offer(self, file: NetworkFile, **source: object) -> bool:
        """Take note of a file that the operator signed; whether it is newer than what was known."""
        if file.run != self.run:
            raise PeerError(f"network file of epoch {file.epoch} belongs to another run: an epoch changes only members")
        if self._share is not None and self.me in file.ids and file.share(self.me) != self._share:
            raise PeerError(
                f"network file of epoch {file.epoch} changes the share of peer {self.me} from {self._share}"
            )
        mine = {order(known) for known in self.epochs.files if known.epoch == file.epoch} - {order(file)}
        if mine and order(file) not in self._rivals:
            self._rivals |= mine | {order(file)}
            self._log("conflict", epoch=file.epoch, text="the operator signed two files of one epoch", **source)
        if not self.epochs.add(file):
            return False
        known = {"epoch": file.epoch, "from_round": file.from_round, "has_key": self._has_key(file)}
        self._log("epoch known", **known, **source)
        self.tag = self.epochs.tag
        self._told.clear()
        self.keep()
        return True

    def for_neighbour(self, neighbour: int, now: float) -> bytes | None:
        """A file to send to a neighbour that knows others; None if it was told lately."""
        last, wait, turn = self._told.get(neighbour, (-TELL, TELL, 0))
        if not self.operator or now < last + wait:
            return None
        self._told[neighbour] = now, min(LONGEST_TELL, 2.0 * wait) if turn else TELL, turn + 1
        files = self.epochs.files[::-1]  # the newest first
        return files[turn % len(files)].text

    def joined(self, neighbour: int) -> None:
        """A neighbour connected: it may have forgotten what it was told."""
        if neighbour in self._told:
            last, _, turn = self._told[neighbour]
            self._told[neighbour] = last, TELL, turn
