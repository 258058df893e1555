"""A peer that joins a run under way: it listens, and starts from the coordinate-wise median of its neighbours' models.

With at most f liars among at least 2 f + 1 answers, f + 1 of them honest, the middle values lie between honest ones: in
every coordinate the new peer starts within the range of what honest neighbours have, whatever liars send. It starts in
the (f + 1)-th largest round it heard of, which some honest neighbour has reached, or in its last one if that is
earlier, and not before the round of its file: whom it hears earlier is only trying that file (trials.py), and will be
gone. Before it has a model of its own nothing tells which numbers are too large: all finite ones count, and are scaled
down only afterwards.

Fewer answers would not do, however long it waits. Of 2 f answers f may lie, and then the f honest ones could as well be
the liars: whatever it chose between the two halves might be out of the honest range. That the silent neighbours are
liars, so that fewer of the others are, is not certain: they may be slow or dead. So f silent liars keep a new peer out
unless it has 3 f + 1 neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from byzmesh.errors import Isolated, PeerError
from byzmesh.peers.links import LARGEST
from byzmesh.peers.wire import peak
from byzmesh.types import Array

if TYPE_CHECKING:
    from byzmesh.peers.peer import Peer

_LISTEN = 0.25


def join(peer: Peer, alone: float, stop: Callable[[], bool]) -> Array | None:
    """(D,) the model to start from; the peer's round is set. None if told to stop.

    It waits for all neighbours, or for `start_grace` seconds after 2 f + 1 of them have answered. `Isolated` if they do
    not answer within `alone` seconds: before the round in which a new peer becomes a member, nobody lets it in.
    """
    count, enough = len(peer.neighbours), 2 * peer.f + 1
    if count < enough:
        raise PeerError(
            f"peer {peer.me} cannot join with {count} neighbours and f = {peer.f}: it needs 2 f + 1 = "
            f"{enough} models to start from; link it to more peers, lower its f, or give --start-from"
        )
    risk = {}
    if count < enough + peer.f:
        risk["text"] = (
            f"{count - enough + 1} of its {count} neighbours can keep it out by silence; with 3 f + 1 = "
            f"{enough + peer.f} neighbours, f cannot"
        )
    peer.log("joining", neighbours=count, needs=enough, **risk)
    first = 0 if peer.membership is None else peer.membership.file.from_round
    limit, answered = peer.world.now() + alone, None
    while not stop():
        peer.pump(_LISTEN)
        newest, now = peer.rounds.letters.newest, peer.world.now()
        if len(newest) >= enough and peer.rounds.trusted >= first:
            answered = now if answered is None else answered
            if len(newest) == count or now >= answered + peer.rounds.patience.start_grace:
                peer.round = peer.rounds.target
                peer.log("joined", round=peer.round, models=len(newest))
                model = np.asarray(np.median(np.stack(list(newest.values())), axis=0), peer.form.dtype)
                peer.rounds.letters.scale_down(LARGEST * max(1.0, peak(model)))
                return model
        elif now >= limit:
            raise Isolated(
                f"peer {peer.me} heard {len(newest)} of {count} neighbours in {alone:.0f} s and needs {enough} to "
                "join; start it again when they have reached the round from which on it is a member"
                + "".join(f" ({text})" for text in risk.values())
            )
    return None
