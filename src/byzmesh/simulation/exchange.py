"""One exchange of messages over a network: the inboxes, what liars send, and what a rule makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from byzmesh.attacks.base import Attack, Forged, Scene, attacks, forged_by
from byzmesh.attacks.scene import make_scene, make_view
from byzmesh.compiled import exact
from byzmesh.errors import ConfigError
from byzmesh.networks import Network, fiedler_vector
from byzmesh.records import made
from byzmesh.round import FIRST, Round
from byzmesh.rules.aggregate import check_feasible
from byzmesh.rules.aggregate import rule as make_rule
from byzmesh.rules.arrivals import Arrivals
from byzmesh.rules.base import Inbox, Rule, State
from byzmesh.rules.inbox import make_inbox, silence
from byzmesh.rules.interop import Bridge
from byzmesh.types import Booleans, Floats, Integers


def scene_of(network: Network) -> Scene:
    """The graph as its liars know it."""
    metropolis = network.with_weights("metropolis-hastings")
    return make_scene(
        network.links.receiver,
        network.links.sender,
        network.honest,
        network.byzantine,
        mixing=(network.link_weight, network.own_weight),
        metropolis=(metropolis.link_weight, metropolis.own_weight),
        fiedler=lambda: fiedler_vector(network.sparse_mixing(network.honest)),
    )


@dataclass(frozen=True)
class Delivery:
    """What arrives in the inboxes of a round.

    index        (R, K) the pool row in each slot
    present      (R, K) whether a message arrived; the exchange's own `valid` if all did
    messages     (Q, D) messages as vectors, None if there are none
    combination  messages as combinations of what honest workers send, None if there are none; see `Pool`
    peak         (Q,) the `peaks` of `messages` if they are known
    """

    index: Integers
    present: Booleans
    messages: Any = None
    _: KW_ONLY
    combination: tuple[Integers, Floats] | None = None
    peak: Floats | None = None


class Exchange:
    """The inboxes of a network's honest workers, prepared once and filled every round.

    receiver    (R,) ids
    row         (n,) row of each worker that sends as told, -1 for liars
    sender      (R, K) who sends to each slot, -1 where padded
    honest_row  (R, K) the sender's row, 0 for liars and where padded
    valid       (R, K) whether a slot is not padding
    lying       (R, K) whether its sender lies; `lies` is their number
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        layout = network.layout
        self.receiver = layout.receiver
        self.weight = layout.weight
        self.degree = layout.degree
        self.sender = layout.sender
        self.valid: Booleans = layout.sender >= 0
        self.row = np.full(network.n, -1, np.int64)
        self.row[network.honest] = np.arange(len(network.honest))
        self.lying = self.valid & (self.row[layout.sender] < 0)
        self.honest_row = np.where(self.valid & ~self.lying, self.row[layout.sender], 0)
        self.lies = int(self.lying.sum())

    def slots(self, forged: Forged | None) -> tuple[Integers, Booleans]:
        """(index, present) (R, K): the pool row in each slot, and whether a message arrived."""
        if forged is None or not len(forged):
            return self.honest_row, self.valid & ~self.lying if self.lies else self.valid
        index, present = np.empty_like(self.honest_row), np.empty_like(self.valid)
        slots = (self.sender, self.honest_row, self.valid, self.lying, self.row)
        told = _place_lies(*slots, forged.victim, forged.liar, forged.row, index, present)
        return index, self.valid if told == self.lies else present

    def deliver(self, forged: Forged | None, half: Any) -> Delivery:
        """What arrives when the honest workers have these half steps (R, D)."""
        index, present = self.slots(forged)
        if forged is None or not len(forged):
            return Delivery(index, present)
        mixed = forged.combination
        return Delivery(
            index, present, forged.rows, combination=None if mixed is None else (mixed.index, mixed.coefficient)
        )

    def arrivals(self, delivery: Delivery, half: Any, f: Integers, b: Floats | None = None) -> Arrivals:
        """All that is known of the inboxes but the vectors."""
        messages, present = delivery.messages, delivery.present
        return made(
            Arrivals,
            own=len(half),
            messages=0 if messages is None else len(messages),
            combination=delivery.combination,
            index=delivery.index,
            weight=self.weight if present is self.valid else silence(self.weight, present),
            present=present,
            f=f,
            receiver=self.receiver,
            b=b,
            dtype=half.dtype,
        )

    def inbox(
        self,
        rule: Rule,
        half: Any,
        delivery: Delivery,
        *,
        f: Integers,
        b: Floats | None = None,
        round: Round,
        previous: Any = None,
        loss: Callable[[Any], Floats] | None = None,
        peak: Floats | None = None,
    ) -> Inbox:
        """The inboxes of all honest workers; half, f, b, previous, loss and peak as in `make_inbox`."""
        return make_inbox(
            rule,
            half,
            weight=self.weight,
            f=f,
            b=b,
            receiver=self.receiver,
            messages=delivery.messages,
            message_peak=delivery.peak,
            combination=delivery.combination,
            index=delivery.index,
            expected=self.valid,
            present=delivery.present,
            round=round,
            previous=previous,
            loss=loss,
            peak=peak,
        )

    def silent(self, present: Booleans) -> list[tuple[int, int]]:
        """(receiver, sender) of every expected message that did not count."""
        row, slot = np.nonzero(self.valid & ~present)
        return list(zip(self.receiver[row].tolist(), self.sender[row, slot].tolist(), strict=True))


@exact
def _place_lies(
    sender: Any,
    honest_row: Any,
    valid: Any,
    lying: Any,
    row: Any,
    victim: Any,
    liar: Any,
    message: Any,
    index: Any,
    present: Any,
) -> Any:
    """index, present (R, K): the rows of honest senders, and message rows, numbered after the own ones, in the slots of
    (victim, liar) pairs; how many of these there are.

    Slots after the first are in order of their senders. A pair that is not linked is left out.
    """
    told = 0
    for receiver in range(sender.shape[0]):
        for slot in range(sender.shape[1]):
            index[receiver, slot] = honest_row[receiver, slot]
            present[receiver, slot] = valid[receiver, slot] and not lying[receiver, slot]
    for pair in range(len(victim)):
        receiver, wanted = row[victim[pair]], liar[pair]
        low, high = 1, sender.shape[1]
        while receiver >= 0 and low < high:
            middle = (low + high) // 2
            if sender[receiver, middle] < 0 or sender[receiver, middle] >= wanted:
                high = middle
            else:
                low = middle + 1
        if receiver >= 0 and low < sender.shape[1] and sender[receiver, low] == wanted and lying[receiver, low]:
            told += not present[receiver, low]
            index[receiver, low] = sender.shape[0] + message[pair]
            present[receiver, low] = True
    return told


def forge(
    attack: str | Attack | Mapping[str, Any] | Callable[..., Any],
    network: Network,
    models: Any,
    *,
    round: Round = FIRST,
    **options: Any,
) -> Forged:
    """What the liars of a network send when the honest workers have these models.

    models  (N, D) in the order of `network.honest`, NumPy or torch

    Returns the messages by (liar, victim): `forged[7, 0]` is what worker 7 tells worker 0.

    >>> import byzmesh as bm
    >>> net = bm.network("paper/two-castle")
    >>> forged = bm.forge("sign-flipping", net, np.ones((10, 3)))
    >>> forged[7, 0]
    array([-1., -1., -1.])
    """
    chosen = attacks.build(attack, **options)
    bridge = Bridge(models, "models")
    rows = _models(bridge, models, network)
    view = make_view(rows, scene_of(network), round)
    forged, _ = forged_by(chosen, view, chosen.init(view.scene))
    if bridge.torch is None:
        return forged
    return Forged(forged.liar, forged.victim, forged.row, models, rows=bridge.back(forged.dense()))


@dataclass(frozen=True, kw_only=True)
class Aggregated:
    """The outcome of one exchange over a whole network.

    models        (N, D) new models of the honest workers, in the order of `network.honest`
    coefficients  (N, K) how much each slot of `network.layout.sender` counted; None for coordinate-wise rules
    state         what the next round needs: pass it back
    kept          (N,) whether too few messages arrived and the worker kept its own model
    silent        (receiver, sender) of the messages that were missing or unusable
    self_weight   (N,) the paper's r_n, for rules of that form
    """

    models: Any
    coefficients: Floats | None
    state: State
    kept: Booleans
    silent: list[tuple[int, int]]
    self_weight: Floats | None


def aggregate_all(
    rule: str | Rule | Mapping[str, Any] | Callable[..., Any],
    network: Network,
    models: Any,
    forged: Forged | None = None,
    f: Any = "exact",
    state: State = None,
    *,
    previous: Any = None,
    round: Round = FIRST,
    loss: Callable[[Any], Floats] | None = None,
    **options: Any,
) -> Aggregated:
    """All honest workers aggregate at once.

    models    (N, D) what the honest workers send, in the order of `network.honest`: their half steps
    forged    messages of the liars (`bm.forge`); None: the liars are silent
    f         bound on the lying neighbours: an integer, one per worker, "exact", "max" or "tolerable"; or {"weight": b}
    state     of rules with memory, from the previous call
    previous  (N, D) models before the gradient step (SimRew; DRSA with at="start" exchanges these)
    round     its number, the step size (DRSA), the seed (bucketing)

    >>> import byzmesh as bm
    >>> net = bm.network("paper/two-castle")
    >>> models = np.random.default_rng(0).normal(size=(10, 5))
    >>> out = bm.aggregate_all("ios", net, models, bm.forge("huge", net, models))
    >>> bool(np.abs(out.models).max() < 4), out.coefficients.shape
    (True, (10, 11))
    """
    chosen = make_rule(rule, **options)
    bridge = Bridge(models, "models")
    rows = _models(bridge, models, network)
    bound = network.bounds(f, chosen.largest_f)
    exchange = Exchange(network)
    check_feasible(chosen, bound, exchange.degree, exchange.receiver)
    start = None if previous is None else _models(bridge, previous, network)
    if forged is not None and forged.rows is not None:
        forged = Forged(forged.liar, forged.victim, forged.row, rows, rows=bridge.rows(forged.rows))
    inbox = exchange.inbox(
        chosen,
        rows,
        exchange.deliver(forged, rows),
        f=bound,
        b=network.weight_bounds(f),
        round=round,
        previous=start,
        loss=loss,
    )
    bad = np.flatnonzero(~inbox.pool.usable[: len(rows)])
    if bad.size:
        raise ConfigError(f"models must be finite, got NaN or infinity at worker {int(network.honest[bad[0]])}")
    outcome, after = chosen.apply(inbox, chosen.init(rows) if state is None else state)
    return Aggregated(
        models=bridge.back(outcome.models),
        coefficients=outcome.coefficients,
        state=after,
        kept=outcome.kept,
        silent=exchange.silent(inbox.present),
        self_weight=outcome.self_weight,
    )


def _models(bridge: Bridge, models: Any, network: Network) -> Any:
    rows = bridge.rows(models)
    if rows.ndim != 2 or len(rows) != len(network.honest):
        raise ConfigError(
            f"models must have shape (N, D) with N = {len(network.honest)} honest workers, got {tuple(rows.shape)}"
        )
    return rows
