"""Which sender's message goes into which slot of each inbox: the network as rules see it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from byzmesh.networks.links import Links
from byzmesh.sparse import frozen, spans
from byzmesh.types import Floats, Integers


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


def inbox_layout(links: Links, link_weight: Floats, own_weight: Floats, receiver: Integers) -> Layout:
    """The inboxes of these receivers, without a loop over them: link_weight (E,), own_weight (n,), receiver (R,).

    >>> path = Links.of_pairs([0, 1, 1, 2], [1, 0, 2, 1], n=3)
    >>> inbox_layout(path, np.full(4, 1 / 3), np.full(3, 1 / 3), np.array([0, 1])).sender
    array([[ 0,  1, -1],
           [ 1,  0,  2]])
    """
    degree = links.degree[receiver]
    entry = spans(links.start[receiver], degree)
    row = np.repeat(np.arange(len(receiver)), degree)
    slot = 1 + spans(np.zeros_like(degree), degree)
    sender = np.full((len(receiver), 1 + int(degree.max())), -1, np.int64)
    sender[:, 0] = receiver
    sender[row, slot] = links.sender[entry]
    weight = np.zeros(sender.shape)
    weight[:, 0] = own_weight[receiver]
    weight[row, slot] = link_weight[entry]
    return Layout(receiver, frozen(sender), frozen(weight), frozen(degree))
