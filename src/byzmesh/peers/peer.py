"""One exchange after another, for your own training loop: send a vector, wait, aggregate what arrived.

    peer = Peer(vector, neighbours, "ios", me=3, address="10.0.0.3:7000", keys=load_keys("peer3.key"), f=1)
    for batch in batches:
        vector = peer.exchange(half_step(vector, batch))

Messages that are missing, late, malformed or not finite count as silence: their weight goes to the peer's own vector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from byzmesh.channels import channel_stages
from byzmesh.channels.sizes import PART_BYTES
from byzmesh.errors import ConfigError, PeerError
from byzmesh.peers.aggregation import Aggregation
from byzmesh.peers.channel_key import new_secret, shared_numbers
from byzmesh.peers.encounters import Encounter
from byzmesh.peers.identity import Keys
from byzmesh.peers.letters import APART, stacked
from byzmesh.peers.links import LARGEST
from byzmesh.peers.neighbourhood import Neighbourhood, mixing_weights
from byzmesh.peers.parts import Parts
from byzmesh.peers.patience import Patience
from byzmesh.peers.rounds import Rounds
from byzmesh.peers.sockets import MACHINE
from byzmesh.peers.transport import OPEN_LINKS, QUEUE, Remote, World
from byzmesh.peers.wire import EVERYONE, Format, peak
from byzmesh.round import Round
from byzmesh.rules.aggregate import check_feasible
from byzmesh.rules.aggregate import rule as make_rule
from byzmesh.rules.base import Outcome, Rule, State
from byzmesh.rules.inbox import sent_by
from byzmesh.rules.interop import Bridge
from byzmesh.rules.streamed import apply_streamed, streams
from byzmesh.types import Array, Floats

if TYPE_CHECKING:
    from byzmesh.peers.membership import Membership


def no_log(event: str, **facts: Any) -> None:
    """A log that discards everything."""


class Peer(Neighbourhood):
    """A member of the network; `exchange` is one round.

    vector      (D,) NumPy array or torch CPU tensor: fixes D, type and dtype of all later vectors
    neighbours  id -> `Remote` or (address, public key)
    rule        a rule, its name, or a mapping with its name and options
    me          this peer's id; ids break ties, so all peers must use the same ones
    weights     id -> mixing weight of each neighbour, the rest is its own (default: equal weights)
    f           bound on the lying neighbours
    run         a number that is the same for all peers of a run; messages of another run are refused
    channel     what happens to a vector on its way, as in a config: "int8", [{"name": "top-k", ...}, "int8"]; the same
                for all peers, as is the first vector if the channel has top-k or rand-k
    meet        round -> `Encounter`, on a network that changes; neighbours are then all that it may ever hear or tell
    open_links  with `meet`: neighbours listened to at a time, besides those of the rounds to come
    part_bytes  a message of more bytes travels in parts of so many; the same for all peers
    world       where messages and the time come from: this machine, or a virtual world in tests
    membership  signed network files that change neighbours, keys and f between two rounds

    >>> from byzmesh.peers.identity import new_keys
    >>> with Peer(np.ones(2), {}, "mean", me=0, address="127.0.0.1:*", keys=new_keys()) as lonely:
    ...     lonely.exchange(np.array([3.0, 4.0])), lonely.round
    (array([3., 4.]), 1)
    """

    def __init__(
        self,
        vector: Any,
        neighbours: Mapping[int, Remote | tuple[str, str]],
        rule: str | Rule | Mapping[str, Any] = "ios",
        *,
        me: int,
        address: str,
        keys: Keys,
        weights: Mapping[int, float] | None = None,
        f: int = 1,
        run: int = 0,
        channel: Any = None,
        patience: Patience | None = None,
        seed: int = 0,
        rounds: int = 0,
        meet: Callable[[int], Encounter] | None = None,
        open_links: int = OPEN_LINKS,
        part_bytes: int = PART_BYTES,
        log: Callable[..., None] = no_log,
        world: World = MACHINE,
        membership: Membership | None = None,
    ) -> None:
        self.f, self.seed = f, seed
        self.rule = make_rule(rule)
        self.bridge = Bridge(vector, "vector")
        if not self.bridge.here:
            raise ConfigError("vector must be in this machine's memory; pass vector.cpu()")
        mine = self.bridge.vector(vector)
        remotes = {
            int(i): remote if isinstance(remote, Remote) else Remote(*remote) for i, remote in neighbours.items()
        }
        if me in remotes:
            raise ConfigError(f"neighbours must not contain the peer's own id {me}")
        self.remotes = remotes
        self.meet, self.open_links = meet, open_links
        if meet is None:
            check_feasible(self.rule, np.array([f]), np.array([len(remotes)]), np.array([me]), all_arrive=False)
        stages = channel_stages(channel)
        if self.rule.sends != "half" and any(stage.stays for stage in stages):
            raise ConfigError(f"rule {self.rule.name} sends models of before its step, which a channel cannot replace")
        public = {neighbour: remote.public_key for neighbour, remote in remotes.items()}
        pairs = shared_numbers(me, keys, public, run) if any(stage.pairwise for stage in stages) else None
        form = Format(run, len(mine), str(mine.dtype), channel, seed=seed, secret=new_secret(), pairs=pairs)
        due = None if meet is None else lambda round: meet(round).senders
        placed = Rounds(sorted(remotes), f, patience or Patience(), due)
        start = form.channel.start(mine[None].copy())
        parts = Parts(form, part_bytes)
        super().__init__(me, placed, parts, start, total=rounds, log=log, world=world, membership=membership)
        self._find_last()
        self.weight = mixing_weights(weights, self.neighbours)
        self._bound = np.array([f])
        self._aggregation = Aggregation(self.rule, me)
        self.state: State = None
        """The state of the rule."""
        self.lost: set[int] = set()
        """Neighbours not heard lately."""
        self.jumps = 0
        self._vector = mine
        self._wanted: dict[int, int] = {}
        largest = parts.frame if membership is None else membership.largest(parts.frame)
        self.transport = world.open(me, address, keys, remotes, largest, log, parts.count)
        self._reach_out(0)

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.leave()
        else:
            self.close()

    def exchange(
        self,
        vector: Any,
        *,
        previous: Any = None,
        step_size: float = 1.0,
        loss: Callable[[Any], float] | None = None,
    ) -> Any:
        """Send `vector` (D,), wait for the neighbours' messages of the round, and return what the rule makes of them.

        previous   (D,) the model before the gradient step, for rules that use it (SimRew, ByRDiE, DRSA at="start")
        step_size  of the gradient step (DRSA)
        loss       vector -> loss on its own batch (UBAR, Zeno)
        """

        def losses(candidates: Any) -> Floats:
            judge = loss or (lambda candidate: 0.0)
            return np.array([[float(judge(self.bridge.back(row))) for row in line] for line in candidates])

        half = self.bridge.vector(vector)
        start = None if previous is None else self.bridge.vector(previous)
        outcome = self.advance(half, start, step_size, None if loss is None else losses)
        return self.bridge.back(outcome.models[0])

    def advance(
        self, half: Array, start: Array | None, step_size: float, losses: Callable[[Any], Floats] | None
    ) -> Outcome:
        """`exchange` for NumPy vectors of the working dtype, with the rule's whole outcome."""
        own = sent_by(self.rule, half, start)
        if len(own) != self.form.dimension:
            raise ConfigError(f"vector must keep its {self.form.dimension} coordinates, got {len(own)}")
        largest = peak(own)
        if largest == np.inf or (own is not half and peak(half) == np.inf):
            raise PeerError(f"peer {self.me}: its own model is not finite in round {self.round}; lower the step size")
        self._largest = LARGEST * max(1.0, largest)
        if self.parts.count > 1 and streams(self.rule):
            return self._streamed(own, step_size)
        messages, came = self.gather(own)
        if self.form.channel.stays:
            half = self._vector
            largest = peak(half)
        tops = self.rounds.tops
        outcome, self.state = self._aggregation.apply(
            half,
            messages,
            came,
            self.rule.init(half[None, :]) if self.state is None else self.state,
            weight=self.weight if self.meet is None else self.meet(self.round).weight_over(self.neighbours),
            f=self._bound,
            round=Round(number=self.round, total=self.total, step_size=step_size, seed=self.seed),
            peak=largest,
            message_peak=np.array(tops) if max(tops, default=0.0) < np.inf else None,
            previous=start,
            loss=losses,
        )
        self.tally.count(outcome, came)
        self.round += 1
        return outcome

    def _streamed(self, own: Array, step_size: float) -> Outcome:
        """The end of `advance` for long vectors: messages are read where they lie, a block at a time."""
        self._exchange(own)
        own = self._vector  # as it was sent, if the channel says so
        new = np.empty_like(own)
        said = apply_streamed(
            self.rule,
            [own],
            self._collect(),
            [new],
            weight=self.weight if self.meet is None else self.meet(self.round).weight_over(self.neighbours),
            f=self._bound,
            receiver=np.array([self.me]),
            dtype=own.dtype,
            round=Round(number=self.round, total=self.total, step_size=step_size, seed=self.seed),
            state=self.state,
        )
        outcome = Outcome(models=new[None, :], coefficients=said.coefficients, kept=said.kept)
        if self.rule.init(new[None, :1]) is not None:
            self.state = outcome.models
        self.tally.count(outcome, said.present[0, 1:])
        self.round += 1
        return outcome

    def gather(self, own: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Send its own vector and wait: messages (d, D) in the order of ids, and which came. May move `round` up."""
        self._exchange(own)
        return stacked(self._collect(), self.form.dimension, self.form.dtype)

    def _collect(self) -> list[Array | None]:
        """End the round: the messages by sender id, None if missing; they are not copied."""
        vectors = self.rounds.collect()
        return vectors if self.screening is None else self._fetch(self.screening, vectors)

    def _exchange(self, own: Array) -> None:
        self._vector = own
        # what came during the local work: whoever fell behind moves up before it sends
        for _ in range(QUEUE * self.parts.count):
            if not self.pump(0.0):
                break
        self._enter(self.rounds.ahead_of(self.round) or self.round)
        self._wait()
        if self.rounds.outrun and self.membership is not None and self.membership.operator:
            self._wait_for_file()
        self._notice(self.world.now())

    def _wait(self) -> None:
        """Wait until the round is over; move up if the others are far ahead."""
        while not self.rounds.ready(now := self.world.now()):
            self.pump(self.rounds.deadline - now)
            target = self.rounds.ahead_of(self.round)
            if target is not None:
                self._enter(target)

    def _wait_for_file(self) -> None:
        """Wait, but for no longer than a timeout, for the file by which honest neighbours are beyond the last round.

        All members have the operator's files, so there is one, and they send it to whoever does not know it.
        """
        limit = self.world.now() + self.rounds.patience.timeout
        while self.rounds.outrun and (now := self.world.now()) < limit:
            self.pump(limit - now)
        if self.rounds.target > self.round:
            self._enter(self.rounds.target)
            self._wait()

    def _enter(self, round: int) -> None:
        if round > self.round:
            self.log("moved up", round=self.round, to=round)
            self.jumps += 1
            self.round = round
        epoch = 0
        if self.membership is not None:
            self.membership.enter(self, round)
            epoch = self.membership.tag
            self._find_last()
        self.rounds.begin(round, self.world.now())
        encounter = None if self.meet is None else self.meet(round)
        if encounter is not None:
            self._reach_out(round)
        # the previous round's message is kept too: a neighbour that joins late may be one round behind
        message, kept = self.form.encode_and_keep(self._vector, self.me, round, EVERYONE, epoch, self.said)
        if self.form.channel.stays:
            self._vector = kept  # sent again in a later round, it must not be sent with other noise than now
        if self._remembers:
            self.said = self.form.decode(message, self.me, state=self.said).state
        size = self.parts.total
        if self.screening is not None:
            message = self.screening.say(message, self.me, round)
            size = len(message)
        readers = None if encounter is None else frozenset(encounter.readers)
        # so may one of a changing network, by more rounds
        self._sent = [*self._sent[(-1 if readers is None else -APART) :], (message, readers)]
        self._resent.clear()
        self.sent_bytes += size * (len(self.neighbours) if readers is None else len(readers))
        if readers is None:
            self._send(message)
        else:
            for reader in sorted(readers):
                self._send(message, reader)
