"""One exchange of messages over a network: the inboxes, what liars send, and what a rule makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.attacks.base import Attack, Forged, Scene, attacks, forged_by
from byzmesh.attacks.scene import make_scene, make_view
from byzmesh.errors import ConfigError
from byzmesh.networks import Network, fiedler_vector
from byzmesh.round import FIRST, Round
from byzmesh.rules.aggregate import check_feasible
from byzmesh.rules.aggregate import rule as make_rule
from byzmesh.rules.base import Inbox, Rule, State
from byzmesh.rules.inbox import make_inbox
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


class Exchange:
    """The inboxes of a network's honest workers, prepared once and filled every round."""

    def __init__(self, network: Network) -> None:
        self.network = network
        layout = network.layout
        self.receiver = layout.receiver
        self.weight = layout.weight
        self.degree = layout.degree
        self.valid: Booleans = layout.sender >= 0
        row = np.full(network.n, -1, np.int64)
        row[network.honest] = np.arange(len(network.honest))
        self.honest_row = np.where(self.valid, row[layout.sender], 0)
        self.sender = layout.sender
        self.lying = self.valid & (self.honest_row < 0)
        self._slots: tuple[Any, Integers, Booleans] | None = None

    def slots(self, forged: Forged | None) -> tuple[Integers, Booleans]:
        """(index, present) (R, K): the pool row in each slot, and whether a message arrived."""
        if forged is None:
            return np.where(self.lying, 0, self.honest_row), self.valid & ~self.lying
        if self._slots is not None and self._slots[0] is forged.row:
            return self._slots[1:]
        row, slot = np.nonzero(self.lying)
        pair = self.network.links.find(forged.victim, forged.liar)
        message = np.full(len(self.network.links.sender), -1, np.int64)
        message[pair[pair >= 0]] = forged.row[pair >= 0]
        sent = message[self.network.links.find(self.receiver[row], self.sender[row, slot])]
        index, present = self.honest_row.copy(), self.valid.copy()
        index[row, slot] = np.where(sent >= 0, len(self.receiver) + sent, 0)
        present[row, slot] = sent >= 0
        if np.array_equal(present, self.valid):
            present = self.valid
        self._slots = (forged.row, index, present)
        return index, present

    def inbox(
        self,
        rule: Rule,
        half: Any,
        forged: Forged | None,
        *,
        f: Integers,
        b: Floats | None = None,
        round: Round,
        previous: Any = None,
        loss: Callable[[Any], Floats] | None = None,
        peak: Floats | None = None,
    ) -> Inbox:
        """The inboxes of all honest workers; half, f, b, previous, loss and peak as in `make_inbox`."""
        index, present = self.slots(forged)
        messages = combination = None
        if forged is not None and len(forged):
            messages, mixed = forged.rows, forged.combination
            combination = None if mixed is None else (mixed.index, mixed.coefficient)
        return make_inbox(
            rule,
            half,
            weight=self.weight,
            f=f,
            b=b,
            receiver=self.receiver,
            messages=messages,
            combination=combination,
            index=index,
            expected=self.valid,
            present=present,
            round=round,
            previous=previous,
            loss=loss,
            peak=peak,
        )

    def silent(self, present: Booleans) -> list[tuple[int, int]]:
        """(receiver, sender) of every expected message that did not count."""
        row, slot = np.nonzero(self.valid & ~present)
        return list(zip(self.receiver[row].tolist(), self.sender[row, slot].tolist(), strict=True))


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
    if forged is not None and bridge.torch is not None and forged.rows is not None:
        forged = Forged(forged.liar, forged.victim, forged.row, rows, rows=bridge.rows(forged.rows))
    inbox = exchange.inbox(
        chosen, rows, forged, f=bound, b=network.weight_bounds(f), round=round, previous=start, loss=loss
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
