"""Lying peers for drills: they share what they receive with each other and know nothing else.

All liars of a drill run in one process, each with its own key, address and sockets. In every round they wait for the
messages of their honest neighbours, put all of them into the attack's view, and send each victim the message forged for
it. Honest peers that are linked to no liar are unknown to them, and so not in the view.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from byzmesh.attacks.base import Attack, Scene, View, forged_by
from byzmesh.attacks.scene import make_scene, make_view
from byzmesh.errors import PeerError
from byzmesh.networks import Network, fiedler_vector
from byzmesh.peers.drill.foresight import foresee
from byzmesh.peers.identity import Keys
from byzmesh.peers.logs import Log
from byzmesh.peers.network_file import NetworkFile
from byzmesh.peers.peer import no_log
from byzmesh.peers.sockets import MACHINE
from byzmesh.peers.transport import Received, World
from byzmesh.peers.wire import Format, WireError
from byzmesh.round import Round
from byzmesh.types import Array

_PATIENCE = 1.0
"""How long the liars wait, after the first message of a round, for the rest of it; and after how many silent seconds
they no longer wait for a victim: at least this, and half of the time that their victims wait for them."""


def heard_scene(network: Network, liars: list[int]) -> Scene:
    """The graph as known to liars that hear only their own neighbours.

    Rows are the honest peers linked to at least one liar, by id: all of them are victims. Their neighbours that no liar
    hears are left out, with their weight.

    >>> from byzmesh.networks import network
    >>> heard_scene(network("ring", n=5), [0]).honest, heard_scene(network("ring", n=5), [0]).neighbour
    (array([1, 4]), array([], shape=(2, 0), dtype=int64))
    """
    ids = np.array(liars, np.int64)
    lies = np.zeros(network.n, bool)
    lies[ids] = True
    heard = np.flatnonzero((network.links.count(lies) > 0) & ~lies)
    metropolis = network.with_weights("metropolis-hastings")
    return make_scene(
        network.links.receiver,
        network.links.sender,
        heard,
        ids,
        mixing=(network.link_weight, network.own_weight),
        metropolis=(metropolis.link_weight, metropolis.own_weight),
        fiedler=lambda: fiedler_vector(network.sparse_mixing(heard)),
    )


class Coalition:
    """The liars of a drill."""

    def __init__(
        self,
        file: NetworkFile,
        keys: Mapping[int, Keys],
        attack: Attack,
        dimension: int,
        log: Log = no_log,
        world: World = MACHINE,
    ) -> None:
        if attack.poisons_data:
            raise PeerError(f"attack {attack.name} does not forge messages from what liars hear; choose another")
        self.file, self.attack, self.log, self.world = file, attack, log, world
        self.liars = sorted(keys)
        self.patience = max(_PATIENCE, file.timeouts.grace / 2)
        self.form = Format(file.run, dimension, file.dtype, file.wire)
        self.scene = heard_scene(file.network, self.liars)
        self.state = attack.init(self.scene)
        self.foresee = foresee(file, self.scene) if attack.needs_response else None
        self.row = {int(peer): row for row, peer in enumerate(self.scene.honest)}
        self.newest = np.zeros((len(self.row), dimension), file.dtype)
        self.known = np.zeros(len(self.row), bool)
        self.heard = np.full(len(self.row), -np.inf)
        self.waiting: dict[int, dict[int, Array]] = {}
        self.since: dict[int, float] = {}
        self.forged = -1
        self.sent: dict[tuple[int, int], bytearray] = {}
        self.stop = False
        self.transports: dict[int, Any] = {}
        self._rehearse(dimension)
        try:
            for liar in self.liars:
                remotes = {j: remote for j, remote in file.remotes(liar).items() if j not in keys}
                self.transports[liar] = world.open(
                    liar, file.entry(liar).address, keys[liar], remotes, self.form.size, log
                )
        except BaseException:
            self.close()
            raise

    def _rehearse(self, dimension: int) -> None:
        """Forge once without sending, so that the attack's kernels are compiled before anybody waits."""
        models = np.random.default_rng(0).normal(size=(len(self.row), dimension)).astype(self.file.dtype)
        self.attack.forge(self._view(models, 0), self.attack.init(self.scene))

    def _view(self, models: Array, number: int) -> View:
        """What the liars see in a round: the models they received, and how their victims would respond to lies."""
        file = self.file
        round = Round(number=number, total=file.rounds, step_size=file.schedule(number), seed=file.seed)
        return make_view(
            models, self.scene, round, respond=None if self.foresee is None else self.foresee(models, round)
        )

    def run(self) -> None:
        """Lie until `stop`."""
        self.log("ready")
        zmq: Any = next(iter(self.transports.values())).zmq
        poller = zmq.Poller()
        for transport in self.transports.values():
            for socket in transport.sockets:
                poller.register(socket, zmq.POLLIN)
        while not self.stop:
            ready = poller.poll(5 if self.waiting else 200)
            for liar, transport in self.transports.items():
                self.take(liar, transport.take(ready))
            self.lie()

    def take(self, liar: int, received: Received) -> None:
        """Hear what a liar received, and send its last lies again to victims that joined."""
        messages, joined = received
        for neighbour, data in messages:
            self._hear(neighbour, data)
        for victim in joined:
            if (liar, victim) in self.sent:
                self.transports[liar].send(self.sent[liar, victim])

    def _hear(self, neighbour: int, data: Any) -> None:
        try:
            message = self.form.decode(data, neighbour)
        except WireError:
            return
        row = self.row[neighbour]
        self.heard[row] = self.world.now()
        self.newest[row], self.known[row] = message.vector, True
        if message.round > self.forged:
            self.waiting.setdefault(message.round, {})[row] = message.vector
            self.since.setdefault(message.round, self.heard[row])

    def lie(self) -> None:
        """Send the lies of every round that is complete, or has waited long enough; the newest such round last."""
        now = self.world.now()
        alive = set(np.flatnonzero(now - self.heard < self.patience).tolist())
        patience = self.patience if self.known.all() else 2 * self.patience
        for round in sorted(self.waiting):
            spoken = self.waiting[round]
            if (alive <= set(spoken) and self.known.all()) or now - self.since[round] > patience:
                self._send(round, spoken)

    def _send(self, round: int, spoken: Mapping[int, Array]) -> None:
        models = self.newest.copy()
        for row, vector in spoken.items():
            models[row] = vector
        # the liars know nothing about a victim that never sent a message: they guess the mean of the others
        models[~self.known] = models[self.known].mean(axis=0)
        forged, self.state = forged_by(self.attack, self._view(models, round), self.state)
        for liar, victim in zip(forged.liar.tolist(), forged.victim.tolist()):
            data = self.form.encode(forged[liar, victim], liar, round, victim)
            self.sent[liar, victim] = data
            self.transports[liar].send(data)
        self.forged = round
        for old in [number for number in self.waiting if number <= round]:
            del self.waiting[old], self.since[old]

    def close(self) -> None:
        """Close all sockets."""
        for transport in self.transports.values():
            transport.close(0.0)
