"""The one-peer exponential graph: in round k, worker i hears worker i - 2^(k mod tau), modulo n, tau = ceil(log2 n).

Not random. When n is a power of two, tau rounds of plain averaging give every worker the exact mean of all.
"""

from __future__ import annotations

import numpy as np

from byzmesh.networks.processes.base import Ground, Meeting, Process, Step, listed, processes


@processes.register("one-peer-exponential", aliases=("one-peer",))
def one_peer_exponential() -> Process:
    """Each worker hears one other, 1, 2, 4, ... places away in turn, whatever the network's own links are.

    >>> import byzmesh as bm
    >>> from byzmesh.networks.processes import Meetings
    >>> rounds = Meetings(bm.process("one-peer"), bm.network("ring", n=8).links)
    >>> [rounds.at(k).links.of(0).tolist() for k in range(4)]
    [[7], [6], [4], [7]]
    """

    def bind(ground: Ground) -> Step:
        n = ground.n
        period = _period(n)

        def step(meeting: Meeting, round: int) -> Meeting:
            if n == 1:
                return meeting
            sender = (np.arange(n) - (1 << round % period)) % n
            return Meeting(listed(np.arange(n + 1), sender, n), meeting.active)

        return step

    return Process(
        "one-peer-exponential",
        bind,
        replaces=True,
        remembers=True,
        recurs=True,
        degree=np.ones_like,
        period=_period,
    )


def _period(n: int) -> int:
    return max(1, (n - 1).bit_length())
