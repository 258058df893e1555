"""The channel of a simulation: what the receivers get instead of what was sent, the same bytes as between peers.

The pool of a round then has, after the workers' own models, a row for what each of them sent as it arrived, and the
lies after these. Lies are rounded as the channel rounds, to the nearest: a liar may send whatever can be read, so no
stage that a sender could leave out (clip, noise) applies to it. Nor do top-k and rand-k: a simulated liar may set any
coordinate in any round, which is more than the wire lets it.

If the channel screens, a lie has the sketch that belongs to it: a message with another one is refused. Liars fetch
everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from byzmesh.attacks.base import Forged
from byzmesh.channels import Channel, Stage, frame_bytes, sent_bytes
from byzmesh.channels.pairs import Pairs
from byzmesh.errors import ConfigError
from byzmesh.networks.links import Links
from byzmesh.networks.processes import Process
from byzmesh.rules.gram.pool import stacked
from byzmesh.rules.interop import from_host, to_host
from byzmesh.simulation.exchange import Delivery, Exchange
from byzmesh.types import Array, Booleans, Integers

_STATE = "state/channel/"


class Courier:
    """Carries the messages of a simulation's workers through a channel.

    ids  (N,) of the workers
    """

    def __init__(self, stages: tuple[Stage, ...], models: Any, ids: Integers, seed: int, links: Links) -> None:
        first = to_host(models)
        self.ids = ids
        pairs = Pairs.of_links(links.receiver, links.sender) if any(stage.pairwise for stage in stages) else None
        self.channel = Channel(stages, first.shape[1], first.dtype.name, seed, pairs=pairs)
        self.channel.check_start(first)
        told = [None if stage.remembers else stage.lying() for stage in stages]
        self._told = [Channel([stage], first.shape[1], first.dtype.name) for stage in told if stage is not None]
        self.start(models)

    def start(self, models: Any) -> None:
        """Go back to round 0, with these first models."""
        self.state = self.channel.start(to_host(models).copy())
        self._spare: Array | None = None

    def carry(self, sent: Any, round: int, reuse: bool = False) -> Any:
        """Take what the workers send, (N, D), to `arrived`, in the same kind of array; what they go on from.

        reuse  whether the next round may write over `arrived`: nobody remembers it
        """
        exact = np.ascontiguousarray(to_host(sent))
        payload, kept = self.channel.send_and_keep(exact, self.state, round, self.ids)
        arrived, self.state = self.channel.receive(payload, self.state, round, self.ids, self._spare)
        self._spare = arrived if reuse else None
        self.arrived = from_host(arrived, sent)
        if self.channel.screen is not None:
            self._sketches = self.channel.sketches(arrived)
        return from_host(kept, sent) if self.channel.stays else sent

    def deliver(self, exchange: Exchange, forged: Forged | None, half: Any, f: Integers) -> Delivery:
        """What arrives of a round's messages: after the own models, the workers' as they arrived, then the lies.

        f  (N,) bound on the lying neighbours: if the channel screens, it decides what is fetched
        """
        told = None if forged is None or not len(forged) else self.lies(forged)
        delivery = exchange.deliver(told, half)
        index = delivery.index.copy()
        index[:, 1:] += len(half)
        lies, present = delivery.messages, delivery.present
        if self.channel.screen is not None:
            sketches = self._sketches
            if lies is not None:
                sketches = np.concatenate([sketches, self.channel.sketches(to_host(lies))])
            readable: Booleans = np.asarray(np.isfinite(sketches).all(axis=1))
            self._came = present & readable[delivery.index]
            present = self.channel.screen.passing(sketches, delivery.index, self._came, f)
            self._declined = self._came & ~present
        return Delivery(index, present, self.arrived if lies is None else stacked(self.arrived, lies))

    def sent_bytes(self, exchange: Exchange, heard: Integers) -> Integers:
        """(N,) bytes that the workers sent in this round, each of them heard by so many."""
        whole = sent_bytes(self.channel.payload)
        if self.channel.screen is None:
            return heard * whole
        declined = np.bincount(exchange.sender[self._declined], minlength=len(exchange.row))[exchange.receiver]
        answers = self._came[:, 1:].sum(axis=1)
        first = frame_bytes(4 * self.channel.screen.width)
        sent: Integers = heard * first + answers * frame_bytes(0) + (heard - declined) * whole
        return sent

    def lies(self, forged: Forged) -> Forged:
        """The lies as they arrive."""
        rows = to_host(forged.dense())
        nobody = np.zeros(len(rows), np.int64)
        with np.errstate(invalid="ignore", over="ignore"):
            for one in self._told:
                rows = one.receive(one.send(rows, (None,), 0, nobody), (None,), 0, nobody)[0]
        return Forged(forged.liar, forged.victim, forged.row, forged.models, rows=from_host(rows, forged.models))

    def arrays(self) -> dict[str, Array]:
        """What a checkpoint keeps."""
        return {f"{_STATE}{place}": part for place, part in enumerate(self.state) if part is not None}

    def resume(self, arrays: Mapping[str, Array]) -> None:
        """Continue from a checkpoint."""
        self.state = tuple(arrays.get(f"{_STATE}{place}") for place in range(len(self.state)))
        self._spare = None


def check_channel(
    stages: tuple[Stage, ...], process: tuple[Process, ...], sends: str = "half", directed: bool = False
) -> None:
    """`ConfigError` if a channel and the network, what changes it, or what the rule sends exclude each other."""
    for stage in stages:
        if stage.pairwise and directed:
            raise ConfigError(f"channel: {stage.name} needs links that go both ways; leave it out, or directed")
        if stage.stays and sends != "half":
            raise ConfigError(
                f"channel: {stage.name} makes its sender's own model, but this rule sends that of before its step; "
                "use another rule, or own: false"
            )
        if process and (stage.pairwise or stage.screens):
            raise ConfigError(f"channel: {stage.name} is for neighbours that stay; leave out process")
        if process and stage.remembers:
            raise ConfigError(
                f"channel: {stage.name} builds on the last message, which under a process not all receivers get; "
                "leave one of them out"
            )
        if any(one.oldest for one in process):
            raise ConfigError("channel: messages of process late do not go through one; leave one of them out")
