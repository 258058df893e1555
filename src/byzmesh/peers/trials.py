"""When a peer that hears too few looks for the others under a later file. Pure logic, no I/O.

A peer that was away may have missed the round of a file that it knows: then the others use other keys than it does, and
it hears nobody. So while at most f of its neighbours speak, which may all be liars, it *tries* later files: for one
round it listens by one of them. A trial decides nothing. What is in force is decided by the round alone, and the round
moves up only to what more than f neighbours say, of whom one is honest: if the others are past the file's round, the
trial tells so and the file is in force; if not, the trial is over with its round.

Peers that look for each other must not miss each other for ever, one trying while the other does not. So each pause
between two trials is twice as long as the one before, until more than f are heard under the file in force: if honest
neighbours are cut off together and linked again before the file's round, there comes a time in which none of them
tries. Whoever is cut off for long is found again in about as long again.
"""

from __future__ import annotations


class Trials:
    """The trials of one peer, counted in its rounds with too few neighbours.

    >>> trials = Trials()
    >>> [trials.due(deaf=True, trying=False) for _ in range(8)]
    [0, None, 1, None, None, None, 2, None]
    >>> trials.due(deaf=False, trying=False), trials.due(deaf=True, trying=False)
    (None, 0)
    """

    def __init__(self) -> None:
        self._rounds = 0

    def due(self, *, deaf: bool, trying: bool) -> int | None:
        """A round begins: the number of the trial to make in it, None if it goes by the file in force.

        deaf    whether at most f neighbours were heard lately
        trying  whether the round before was a trial: whom it met there may be trying as well
        """
        if deaf:
            self._rounds += 1
        elif not trying:
            self._rounds = 0
        count = self._rounds
        return None if not deaf or count & (count + 1) else count.bit_length() - 1
