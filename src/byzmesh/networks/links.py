"""Who hears whom, as sparse rows: every worker's list of senders instead of an (n, n) matrix.

Memory and time are O(n + E) with E the number of directed links. Nothing here assumes that links go both ways.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.sparse import DENSE, frozen, spans
from byzmesh.types import Booleans, Floats, Integers


@dataclass(frozen=True, eq=False)
class Links:
    """Worker n hears sender[start[n] : start[n + 1]], ascending and without itself.

    start   (n + 1,)
    sender  (E,) a link that goes both ways is two entries

    >>> links = Links.of_pairs([0, 1, 1, 2], [1, 0, 2, 1], n=3)
    >>> links.of(1), links.degree
    (array([0, 2]), array([1, 2, 1]))
    """

    start: Integers
    sender: Integers

    @classmethod
    def of_pairs(cls, receiver: Any, sender: Any, n: int) -> Links:
        """From pairs in any order; a pair given twice counts once."""
        key = np.unique(np.asarray(receiver, np.int64) * n + np.asarray(sender, np.int64))
        return cls._in_order(*np.divmod(key, n), n)

    @classmethod
    def _in_order(cls, receiver: Integers, sender: Integers, n: int) -> Links:
        start = np.concatenate([[0], np.cumsum(np.bincount(receiver, minlength=n))]).astype(np.int64)
        return cls(frozen(start), frozen(sender))

    @property
    def n(self) -> int:
        """Number of workers."""
        return len(self.start) - 1

    @cached_property
    def degree(self) -> Integers:
        """(n,) how many senders each worker hears."""
        return frozen(np.diff(self.start))

    @cached_property
    def receiver(self) -> Integers:
        """(E,) who hears the sender of each entry."""
        return np.repeat(np.arange(self.n), self.degree)

    @cached_property
    def back(self) -> Integers:
        """(E,) where the opposite direction of each entry is; -1 if the link goes one way."""
        return self.find(self.sender, self.receiver)

    def of(self, worker: int) -> Integers:
        """Whom a worker hears."""
        return self.sender[self.start[worker] : self.start[worker + 1]]

    def find(self, receiver: Any, sender: Any) -> Integers:
        """Where these pairs are among the entries; -1 for those that are not linked.

        >>> Links.of_pairs([0, 1], [1, 0], n=3).find([0, 2], [1, 0])
        array([ 0, -1])
        """
        wanted = np.asarray(receiver, np.int64) * self.n + np.asarray(sender, np.int64)
        if len(self.sender) == 0:
            return np.full(wanted.shape, -1, np.int64)
        key = self.receiver * self.n + self.sender
        spot = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        return np.where(key[spot] == wanted, spot, -1)

    def both_ways(self) -> Integers:
        """(E / 2, 2) every link that goes both ways once, the smaller id first, in order."""
        once = (self.receiver < self.sender) & (self.back >= 0)
        return np.stack([self.receiver[once], self.sender[once]], axis=1)

    @cached_property
    def directed(self) -> bool:
        """Whether some link goes one way only."""
        return bool((self.back < 0).any())

    def edges(self) -> Integers:
        """(E', 2) the links as users list them: (sender, receiver) of each if some go one way, else each once."""
        return np.stack([self.sender, self.receiver], axis=1) if self.directed else self.both_ways()

    def reversed(self) -> Links:
        """The links in the opposite direction: who tells whom."""
        return Links.of_pairs(self.sender, self.receiver, self.n)

    def count(self, chosen: Booleans) -> Integers:
        """(n,) how many of the chosen workers (n,) each one hears."""
        return np.bincount(self.receiver, chosen[self.sender], minlength=self.n).astype(np.int64)

    def among(self, nodes: Integers) -> tuple[Links, Integers]:
        """The links between these nodes (ascending ids), renumbered in order, and which entries they are.

        >>> inner, kept = Links.of_pairs([0, 1, 1, 2], [1, 0, 2, 1], n=3).among(np.array([1, 2]))
        >>> inner.sender, kept
        (array([1, 0]), array([2, 3]))
        """
        row = np.full(self.n, -1, np.int64)
        row[nodes] = np.arange(len(nodes))
        kept = np.flatnonzero((row[self.receiver] >= 0) & (row[self.sender] >= 0))
        return Links._in_order(row[self.receiver[kept]], row[self.sender[kept]], len(nodes)), kept

    def dense(self, what: str = "adjacency") -> Booleans:
        """(n, n) the matrix of who (row) hears whom (column); `ConfigError` above `DENSE` nodes."""
        check_dense(self.n, what)
        matrix = np.zeros((self.n, self.n), np.bool_)
        matrix[self.receiver, self.sender] = True
        return matrix

    def matrix(self, value: Floats, own: Floats) -> Any:
        """The (n, n) SciPy matrix in rows with these entries (E,) and diagonal (n,)."""
        from scipy.sparse import csr_array, diags_array

        between = csr_array((value, self.sender, self.start), shape=(self.n, self.n))
        return (between + diags_array(own, format="csr")).tocsr()

    def reach(self, root: int = 0) -> Booleans:
        """(n,) whom `root` hears, directly or through others, itself included."""
        reached = np.zeros(self.n, bool)
        reached[root] = True
        front = np.array([root], np.int64)
        while len(front):
            heard = self.sender[spans(self.start[front], self.degree[front])]
            front = np.unique(heard[~reached[heard]])
            reached[front] = True
        return reached


def check_dense(n: int, what: str) -> None:
    """Raise `ConfigError` if a network is too large for a dense matrix.

    >>> check_dense(100_000, "mixing")
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: mixing is an (n, n) array for networks of at most 4096 nodes, got n = 100000; use ...
    """
    if n > DENSE:
        raise ConfigError(
            f"{what} is an (n, n) array for networks of at most {DENSE} nodes, got n = {n}; "
            "use network.links and network.link_weight, or network.sparse_mixing()"
        )
