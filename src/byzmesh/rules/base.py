"""The records that every rule file uses.

A *rule* maps each receiver's inbox (`Inbox`) to its new model. It is a pair of pure functions, like an optimiser:
`init` makes the first round's state, `apply` turns inbox and state into an `Outcome` and the next state.

    slot          0     own vector
                  1..d  one vector per neighbour, by sender id (so "the first" is the lowest id, which breaks ties)
                  d+1   padding where another receiver has more neighbours: present is False, weight is 0

A *Gram rule* only says how much each slot counts (`Block` -> coefficients); `rules/gram` does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np

from byzmesh.compiled import exact
from byzmesh.entries import as_call
from byzmesh.registry import Registry
from byzmesh.round import FIRST, Round
from byzmesh.rules.arrivals import Arrivals
from byzmesh.rules.contraction import Contraction, Neighbourhoods
from byzmesh.rules.feasible import Feasible
from byzmesh.rules.gram.pool import Pool
from byzmesh.sums import MOST, row_sum
from byzmesh.types import Booleans, Floats, Integers

State = Any

UNBOUNDED = 1 << 30
"""`largest_f` of a rule that does not use f."""

VirtualMixing = Literal["to-own", "equal", "own"]
"""The average that a rule would form if it knew the liars, as a matrix W over the honest workers.

to-own   w_nm = w'_nm, and the weight of the liars goes to the receiver: w_nn = w'_nn + sum_{lying b} w'_nb
equal    w_nm = 1 / (N_n + 1) over the receiver and its N_n honest neighbours
own      W = I
"""


@dataclass(frozen=True, kw_only=True)
class Inbox:
    """The inboxes of R receivers in one round; `make_inbox` fills them.

    index     (R, K) row of the pool in each slot
    weight    (R, K) mixing weights w'_nm, own first; rows sum to 1, absent slots weigh 0
    present   (R, K) whether the slot has a usable message
    f         (R,)   bound on the lying neighbours
    receiver  (R,)   ids of the receivers, for rules that draw (bucketing)

    >>> import byzmesh as bm
    >>> def lonely(inbox, state):
    ...     kept = np.zeros(len(inbox.index), bool)
    ...     return bm.Outcome(models=inbox.pool.own[inbox.index[:, 0]].copy(), kept=kept), state
    >>> bm.aggregate(bm.Rule("lonely", lonely), np.zeros(1), [[4.0], [9.0]])
    array([0.])
    """

    pool: Pool
    index: Integers
    weight: Floats
    present: Booleans
    f: Integers
    receiver: Integers
    b: Floats | None = None
    """(R,) bound on what the lying neighbours weigh together, besides f; None: f alone."""
    round: Round = FIRST
    previous: Any = None
    """(R, D) the receivers' models before their gradient step, for rules that use them (SimRew)."""
    half: Any = None
    """(R, D) the receivers' half steps, for a rule whose workers send the models before them (`sends="start"`)."""
    loss: Callable[[Any], Floats] | None = None
    """(R, K, D) candidate models -> (R, K) loss of each on the receiver's own batch, for UBAR and Zeno."""
    out: Any = None
    """(R, D) memory that a rule may return as the new models, if there is any to spare; nobody reads what is in it."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """The geometry of R inboxes: all that a Gram rule may use.

    inner    (R, K, K) inner products <y_i - own, y_j - own> in float64; row and column 0 are zero

    The other fields are those of `Inbox`; `f` is already limited by the number of messages that arrived.

    >>> import byzmesh as bm
    >>> def own_and_nearest(block):
    ...     near = np.where(block.present, block.distance2[:, 0], np.inf)
    ...     near[:, 0] = np.inf
    ...     out = np.zeros_like(block.weight)
    ...     out[:, 0], out[np.arange(len(out)), near.argmin(axis=1)] = 0.5, 0.5
    ...     return out
    >>> bm.aggregate(bm.gram_rule("own-and-nearest", own_and_nearest), np.zeros(1), [[4.0], [9.0]])
    array([2.])
    """

    inner: Floats
    weight: Floats
    present: Booleans
    f: Integers
    receiver: Integers
    tie: float
    """Relative difference of squared distances below which two count as equal (rounding of the input's dtype)."""
    round: Round = FIRST
    b: Floats | None = None

    @classmethod
    def alike(cls, other: Block, inner: Floats, round: Round) -> Block:
        """Another round's block with the same slots, weights and bounds, and what is known from these alone."""
        made = cls.__new__(cls)
        made.__dict__.update(other.__dict__, inner=inner, round=round)
        return made

    @cached_property
    def room(self) -> Floats:
        """(R,) how much weight may be cut: b, or no limit besides f."""
        return np.full(len(self.f), np.inf) if self.b is None else self.b

    @cached_property
    def distance2(self) -> Floats:
        """(R, K, K) squared distances between the slots."""
        gap = np.empty(self.inner.shape)
        squared_distances(self.inner, gap)
        return gap


@exact
def squared_distances(inner: Any, out: Any) -> None:
    """out[r, i, j] = <y_i, y_i> + <y_j, y_j> - 2 <y_i, y_j>, at least 0; NaN stays."""
    for receiver in range(inner.shape[0]):
        for i in range(inner.shape[1]):
            for j in range(inner.shape[2]):
                gap = inner[receiver, i, i] + inner[receiver, j, j] - 2.0 * inner[receiver, i, j]
                out[receiver, i, j] = 0.0 if gap < 0.0 else gap


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of a rule.

    models        (R, D) the new models
    coefficients  (R, K) how much each slot counted, None for coordinate-wise rules; `anchor` (R,) is the coefficient of
                  a point outside the inbox (CC's memory, SimRew's model before the step), None if there is none
    kept          (R,) True where too few messages arrived and the worker kept its own model

    >>> out = Outcome(models=np.zeros((1, 2)), coefficients=np.array([[0.5, 0.5]]), kept=np.array([False]))
    >>> out.coefficients.sum(axis=1)
    array([1.])
    """

    models: Any
    kept: Booleans
    coefficients: Floats | None = None
    anchor: Floats | None = None
    self_weight: Floats | None = None
    """(R,) the paper's r_n in A_n = (1 - r_n) A + r_n x_n, if the rule has this form."""


def normalised(weight: Any) -> Floats:
    """(R, K) each row divided by its sum; a row without any weight goes to its own model.

    >>> normalised(np.array([[True, True, False], [False, False, False]]))
    array([[0.5, 0.5, 0. ],
           [1. , 0. , 0. ]])
    """
    if weight.shape[1] <= MOST:
        out = np.empty(weight.shape)
        normalise(weight, out)
        return out
    total = weight.sum(axis=1, keepdims=True)
    if not total.all():
        weight = np.where((total == 0) & (np.arange(weight.shape[1]) == 0), 1.0, weight)
        total = weight.sum(axis=1, keepdims=True)
    shares: Floats = weight / total
    return shares


@exact
def normalise(weight: Any, out: Any) -> None:
    """out = `normalised` of at most `MOST` slots, which may be the same array, for kernels."""
    for row in range(weight.shape[0]):
        out[row] = weight[row]
        total = row_sum(out[row])
        if total == 0.0:
            out[row, 0] = total = 1.0
        for slot in range(weight.shape[1]):
            out[row, slot] /= total


def no_state(models: Any) -> State:
    """`init` of a rule without memory."""
    return None


@dataclass(frozen=True)
class Choosing:
    """An `apply` that chooses coefficients, mixes and does nothing else (rules/gram/prepared.py).

    It names the function that it describes, so that a rule made from another one by `replace` does not inherit it.
    """

    apply: Callable[[Inbox, State], tuple[Outcome, State]]
    coefficients: Callable[[Block], Floats] | None
    """None: the mixing weights of what arrived."""
    feasible: Feasible | None = None
    _: KW_ONLY
    remembers: bool = False
    """Whether the state is the previous output, which is then one more, last slot."""
    own_distances: bool = False
    """Whether the coefficients depend on no distances but those from its own model."""
    kernel: Any = None
    """`coefficients` as a compiled function (inner, weight, present, f, room, tie, settings, out), the first six as in
    `Block`, which writes them to `out` (R, K): a round can then be one compiled call. None: there is none."""
    settings: tuple[float, ...] = ()
    """The rule's options for the kernel, as an array."""


@dataclass(frozen=True)
class Ranking:
    """An `apply` that takes the mean of some ranks of each coordinate and does nothing else (rules/ranks/prepared.py).

    It names the function that it describes, as `Choosing` does.
    """

    apply: Callable[[Inbox, State], tuple[Outcome, State]]
    ranks: Callable[[Integers, Integers], tuple[Integers, Integers]]
    """(values (R,), f (R,)) -> the lowest rank (R,), and the one after the highest (R,)."""
    apart: bool
    """Whether its own value is not ranked but counts in the mean."""
    feasible: Feasible | None = None


@dataclass(frozen=True, repr=False)
class Rule:
    """A robust aggregation rule: two pure functions and facts about them.

    No code depends on a rule's name: the rule declares what a certificate needs (`virtual_mixing`, `contraction`,
    `gossip_error`), with the proof in its own file. What is not declared counts as unknown.

    >>> import byzmesh as bm
    >>> ios = bm.rule("ios")
    >>> ios.name, ios.uses_f, ios.largest_f(5)
    ('IOS', True, 4)
    >>> bm.rule("cc", tau=0.2)
    rule('CC', tau=0.2, centre='own', iterations=1)
    """

    name: str
    apply: Callable[[Inbox, State], tuple[Outcome, State]]
    _: KW_ONLY
    init: Callable[[Any], State] = no_state
    """(R, D) first half-step models -> state."""
    options: Mapping[str, Any] = field(default_factory=dict)
    feasible: Feasible | None = None
    """The condition on f; None: the rule does not use f."""
    uses_weights: bool = False
    sends: str = "half"
    """What workers exchange: the model after the gradient step (`half`) or before it (`start`)."""
    needs_previous: bool = False
    """Whether `Inbox.previous` must be given."""
    needs_loss: bool = False
    uses_length: bool = False
    """Whether a round depends on the total number of rounds: such a run cannot continue a shorter one."""
    translates: bool = True
    """A shift of all inputs shifts the output by the same."""
    idempotent: bool = True
    """Identical inputs return that input."""
    affine: bool = True
    """Coefficients (where the rule has them) sum to 1."""
    coordinatewise: bool = False
    """Works on each coordinate separately: no coefficients."""
    coefficients: Callable[[Block], Floats] | None = None
    """The whole rule as a function of the geometry, if it is one; pre-aggregators build on it."""
    consists_of: Choosing | Ranking | None = None
    """What `apply` consists of, if rounds in which the same messages arrive can be prepared; None: unknown."""
    weights_alone_at_zero: bool = False
    """With f = 0 the coefficients depend on nothing but the weights and on which messages arrived."""
    keeps_own: bool = False
    """The receiver's own model is never cut, whatever the neighbours send."""
    symmetric: bool = False
    """Its own vector counts like any message: exchanging the two changes nothing (but ties). Weights do not matter."""
    virtual_mixing: VirtualMixing | None = None
    """The W that the theory assigns to the rule; None: there is none."""
    contraction: Contraction | None = None
    """What is proved about its contraction constant, with that W or, without one, with the conventional W (to-own for
    a rule that uses the weights, else equal); None: nothing."""
    gossip_error: Callable[[Neighbourhoods], Floats] | None = None
    """(N,) e_n with ||A_n - xbar_n||^2 <= e_n sum_m w'_nm ||x_n - x_m||^2 over the honest neighbours m, W to-own, for
    the criterion 2 e < mu_2 of robust gossip (`theory.gossip`); None: nothing of this form is proved."""
    square_error: Callable[[Floats], Floats] | None = None
    """h (N,) -> (N,) k_n with ||A_n - c||^2 <= k_n sum_m w'_nm ||x_m - c||^2 over the honest m, n among them, for every
    point c, if at most f lie and the f heaviest weigh h_n, and w'_nn includes what silent neighbours weigh; for rules
    around this one (WeightedNNM). None: nothing of this form is proved."""

    def __repr__(self) -> str:
        return as_call("rule", self.name, self.options)

    @property
    def uses_f(self) -> bool:
        """Whether the result depends on the bound f."""
        return self.feasible is not None

    def largest_f(self, neighbours: int) -> int:
        """Largest feasible f for a number of neighbours; -1 if the rule cannot run even with f = 0."""
        return UNBOUNDED if self.feasible is None else self.feasible.largest(neighbours)


def settle(inbox: Inbox | Arrivals, feasible: Feasible | None) -> tuple[Integers, Booleans]:
    """Reduce f to fit what arrived: (f (R,), kept (R,)), kept where the rule's condition fails even then.

    Feasibility was checked once on the configured neighbourhood; silent liars must not stop an honest worker.
    """
    if feasible is None:
        return inbox.f, np.zeros(len(inbox.f), bool)
    f, kept = np.empty(len(inbox.f), np.int64), np.empty(len(inbox.f), bool)
    _settle(inbox.present, inbox.f, _bounds(feasible, inbox.present.shape[1]), f, kept)
    return f, kept


@exact
def _settle(present: Any, bound: Any, largest: Any, f: Any, kept: Any) -> None:
    for receiver in range(present.shape[0]):
        arrived = -1
        for slot in range(present.shape[1]):
            arrived += present[receiver, slot]
        f[receiver] = min(bound[receiver], arrived)
        kept[receiver] = f[receiver] > largest[arrived]


@lru_cache(maxsize=64)
def _bounds(feasible: Feasible, slots: int) -> Integers:
    return np.array([feasible.largest(count) for count in range(slots)])


rules: Registry[Rule] = Registry("rule", "byzmesh.rules", ("byzmesh.rules",), Rule)
