"""Lying peers for drills: they share what they receive with each other and know nothing else.

All liars of a drill run in one process, each with its own key, address and sockets. In every round they wait for the
messages of their honest neighbours, put all of them into the attack's view, and send each victim the message forged for
it. Honest peers that are linked to no liar are unknown to them, and so not in the view. If the channel screens, they
fetch every message, and send theirs to whoever asks.
"""

from __future__ import annotations

import contextlib
import selectors
from collections.abc import Mapping
from typing import Any

import numpy as np

from byzmesh.attacks.base import Attack, Scene, View, forged_by
from byzmesh.attacks.scene import make_scene, make_view
from byzmesh.errors import PeerError
from byzmesh.networks import Network, fiedler_vector
from byzmesh.peers.drill.foresight import foresee
from byzmesh.peers.epochs import Epochs
from byzmesh.peers.identity import Keys
from byzmesh.peers.logs import Log
from byzmesh.peers.network_file import NetworkFile, signed_network
from byzmesh.peers.parts import Parts
from byzmesh.peers.peer import no_log
from byzmesh.peers.screening import Frame, decode_screening, encode_answer, encode_sketch, is_screening
from byzmesh.peers.signing import LARGEST_FILE
from byzmesh.peers.sockets import MACHINE
from byzmesh.peers.transport import Received, Remote, World
from byzmesh.peers.wire import HEADER, Format, WireError, carries_file, decode_file
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
        self.attack, self.log, self.world = attack, log, world
        self.keys = dict(keys)
        self.epochs = Epochs(file)
        self.form = Format(file.run, dimension, file.dtype, file.channel, seed=file.seed)
        self.told = self.form.lying()
        self.forged = -1
        self.stop = False
        self.transports: dict[int, Any] = {}
        self._meet(file)
        self._rehearse(dimension)
        self.parts = {liar: Parts(self.form) for liar in self.keys}
        frame, count = Parts(self.form).frame, Parts(self.form).count
        largest = max(frame, LARGEST_FILE + HEADER.size) if file.operator else frame
        try:
            for liar in self.liars:
                self.transports[liar] = world.open(
                    liar, file.entry(liar).address, self.keys[liar], self._victims(liar), largest, log, count
                )
        except BaseException:
            self.close()
            raise

    def _meet(self, file: NetworkFile) -> None:
        """Know the members of a network file, and nothing of what was said before."""
        self.file = file
        self.liars = [liar for liar in sorted(self.keys) if liar in file.ids]
        self.patience = max(_PATIENCE, file.timeouts.grace / 2)
        self.scene = heard_scene(file.network, [file.node(liar) for liar in self.liars])
        self.state = self.attack.init(self.scene)
        self.foresee = foresee(file, self.scene) if self.attack.needs_response else None
        self.row = {file.ids[node]: row for row, node in enumerate(self.scene.honest)}
        self.states: dict[int, Any] = {}
        self.newest = np.zeros((len(self.row), self.form.dimension), file.dtype)
        self.known = np.zeros(len(self.row), bool)
        self.heard = np.full(len(self.row), -np.inf)
        self.waiting: dict[int, dict[int, Array]] = {}
        self.since: dict[int, float] = {}
        self.sent: dict[tuple[int, int], bytearray] = {}

    def _victims(self, liar: int) -> dict[int, Remote]:
        return {j: remote for j, remote in self.file.remotes(liar).items() if j not in self.keys}

    def _take_up(self, file: NetworkFile) -> None:
        """Go on with the members of a newer file, with the keys that the liars have."""
        self._meet(file)
        for liar, transport in self.transports.items():
            if liar in self.liars:
                transport.change(file.entry(liar).address, self.keys[liar], self._victims(liar))
        self.log("epoch in force", epoch=file.epoch)

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
        with selectors.DefaultSelector() as waiting:
            for transport in self.transports.values():
                waiting.register(transport, selectors.EVENT_READ)
            while not self.stop:
                waiting.select(0.005 if self.waiting else 0.2)
                for liar, transport in self.transports.items():
                    self.take(liar, transport.receive(0.0))
                self.lie()

    def take(self, liar: int, received: Received) -> None:
        """Hear what a liar received, and send its last lies again to victims that joined."""
        messages, joined = received
        for neighbour, data in messages:
            self._hear(liar, neighbour, data)
        for victim in joined:
            if (liar, victim) in self.sent:
                self._tell(liar, victim)

    def _tell(self, liar: int, victim: int) -> None:
        """Send a victim what was forged for it, or the sketch of it."""
        data = self.sent[liar, victim]
        if self.form.channel.screen is None:
            self._send_whole(liar, data)
            return
        with contextlib.suppress(WireError):  # what cannot be read has no sketch
            message = self.form.decode(data, liar)
            sketch = self.form.channel.sketches(message.vector[None])[0]
            self.transports[liar].send(encode_sketch(self.form, sketch, liar, message.round, victim))

    def _send_whole(self, liar: int, data: bytearray) -> None:
        for frame in self.parts[liar].frames(data):
            self.transports[liar].send(frame)

    def _screen(self, liar: int, neighbour: int, frame: Frame) -> None:
        """Fetch what was sketched, and send what is asked for."""
        if frame.sketch is not None:
            self.transports[liar].send(encode_answer(self.form, True, liar, frame.round, neighbour))
        elif frame.fetch and (liar, neighbour) in self.sent:
            self._send_whole(liar, self.sent[liar, neighbour])

    def _hear(self, liar: int, neighbour: int, data: Any) -> None:
        try:
            if carries_file(data) and self.file.operator:
                text = decode_file(data, self.form.run, neighbour)
                self.epochs.add(signed_network(text, self.file.operator, self.file.folder))
                return
            if self.form.channel.screen is not None and is_screening(data):
                self._screen(liar, neighbour, decode_screening(self.form, data, neighbour))
                return
            whole = self.parts[liar].add(neighbour, data)
            if whole is None:
                return
            message = self.form.decode(whole, neighbour, state=self.states.get(neighbour))
        except PeerError:
            return
        self.states[neighbour] = message.state
        file = self.epochs.enter(message.round)
        if file is not self.file:
            self._take_up(file)
        row = self.row.get(neighbour)
        if row is None:
            return
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
        ids = self.file.ids
        for liar_node, node in zip(forged.liar.tolist(), forged.victim.tolist()):
            liar, victim = ids[liar_node], ids[node]
            data = self.told.encode(forged[liar_node, node], liar, round, victim, self.epochs.tag)
            self.sent[liar, victim] = data
            self._tell(liar, victim)
        self.forged = round
        for old in [number for number in self.waiting if number <= round]:
            del self.waiting[old], self.since[old]

    def close(self) -> None:
        """Close all sockets."""
        for transport in self.transports.values():
            transport.close(0.0)
