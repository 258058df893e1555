"""What a single receiver's Gram rule sees, if its inbox is its own model and messages: one pass over them.

Its own model is the centre, so the squared distances of the messages from it are on the diagonal of their products.
From these it follows whether every message is finite and none is huge; nothing else has to be read for that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.rules.gram.slots import gather_blocks
from byzmesh.rules.gram.small_kernels import own_products
from byzmesh.types import Array, Floats


@exact
def own_gram(own: Array, messages: Array, gram: Floats) -> None:
    """Only the diagonal of the products, the squared distances from its own model; the rest is zero."""
    square = np.empty(messages.shape[0])
    own_products(own, messages, 0, own.shape[1], square)
    gram[:] = 0.0
    for row in range(square.size):
        gram[row + 1, row + 1] = square[row]


@exact
def near_block(gram: Floats, peak: float, largest: float, index: Any, present: Any, out: Any) -> bool:
    """out (1, K, K) = the products of the slots; False if a row may have a number above `largest`, or NaN.

    peak  the largest absolute value of its own model: those of a message are at most this and their distance
    """
    near = peak <= largest
    for row in range(1, gram.shape[0]):
        near &= peak + np.sqrt(gram[row, row]) <= largest
    if near:
        gather_blocks(gram, index, present, out)
    return near
