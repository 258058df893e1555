"""Which sender's message goes into which slot of each inbox: the network as rules see it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from byzmesh.types import Booleans, Floats, Integers


@dataclass(frozen=True)
class Layout:
    """Inboxes of R receivers; K is 1 + the largest degree among them.

    receiver  (R,)   ids of the receivers, ascending
    sender    (R, K) id of the sender in each slot: own in slot 0, then the neighbours ascending, padded with -1
    weight    (R, K) mixing weight of each slot, own first, padded with 0
    degree    (R,)   number of neighbours
    """

    receiver: Integers
    sender: Integers
    weight: Floats
    degree: Integers


def inbox_layout(adjacency: Booleans, mixing: Floats, receiver: Integers) -> Layout:
    """The inboxes of these receivers, without a loop over them.

    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], bool)
    >>> inbox_layout(path, np.eye(3), np.array([0, 1])).sender
    array([[ 0,  1, -1],
           [ 1,  0,  2]])
    """
    inbox = adjacency[receiver]
    degree = inbox.sum(axis=1, dtype=np.int64)
    line, neighbour = np.nonzero(inbox)
    first = np.concatenate([[0], np.cumsum(degree)[:-1]])
    slot = 1 + np.arange(len(line)) - first[line]
    sender = np.full((len(receiver), 1 + int(degree.max())), -1, np.int64)
    sender[:, 0] = receiver
    sender[line, slot] = neighbour
    weight = np.where(sender >= 0, mixing[receiver[:, None], sender], 0.0)
    for array in (sender, weight, degree):
        array.setflags(write=False)
    return Layout(receiver, sender, weight, degree)
