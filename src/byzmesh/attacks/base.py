"""Attacks: what a liar sees (`View`) and what it sends (`Forged`).

An *attack* is a pair of pure functions. `init` sees the graph once (`Scene`) and prepares what does not change from
round to round; `forge` sees the honest models of a round and makes the messages. A liar may tell each victim something
different, so messages belong to (liar, victim) pairs.

Most attacks send linear combinations of honest models. Those are returned as coefficients over the honest rows, not as
vectors: the simulator then gets all distances from one Gram matrix and never builds the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.entries import as_call
from byzmesh.errors import ConfigError
from byzmesh.registry import Registry
from byzmesh.round import FIRST, Round
from byzmesh.types import Floats, Integers

State = Any
Weigh = Callable[[Floats, Floats], Floats]


def no_wrong_model(rounds: int) -> Any:
    """`Scene.wrong_model` where there is no data."""
    raise ConfigError("attacks target and box train a wrong model on the problem's data; run them in a simulation")


def no_gradient(model: Any) -> Any:
    """`Scene.gradient` where there is no data."""
    raise ConfigError("an ascent takes the gradient of the honest workers' loss; run it in a simulation")


@dataclass(frozen=True, kw_only=True)
class Scene:
    """The graph as liars know it. Rows are positions in the (N, D) array of honest models; ids are node numbers.

    honest      (N,) ids of the honest workers, in row order
    byzantine   (B,) ids of the liars
    liar        (F,) id of the liar of each pair; pairs are sorted by victim, then by liar
    victim      (F,) id of the victim of each pair
    place       (F,) position of the pair's victim in `victims`
    victims     (V,) rows of the honest workers that have a lying neighbour, ascending
    neighbour   (V, J) rows of each victim's honest neighbours (itself not included), padded with -1
    weight      (V, J) mixing weight of each of them at the victim, 0 where padded
    own_weight  (V,) mixing weight of the victim itself
    lie_weight  (V,) total mixing weight of the victim's lying neighbours
    metropolis_weight, metropolis_own, metropolis_lie: the same three under Metropolis-Hastings weights, whatever the
                victims use
    fiedler     callable -> (N,) Fiedler vector of the honest graph (computed on demand)
    wrong_model callable: rounds -> (D,) a model that learned flipped labels for so long
    gradient    callable: model (D,) -> (D,) gradient of the average of the honest workers' whole losses
    """

    honest: Integers
    byzantine: Integers
    liar: Integers
    victim: Integers
    place: Integers
    victims: Integers
    neighbour: Integers
    weight: Floats
    own_weight: Floats
    lie_weight: Floats
    metropolis_weight: Floats
    metropolis_own: Floats
    metropolis_lie: Floats
    fiedler: Callable[[], Floats]
    wrong_model: Callable[[int], Any] = no_wrong_model
    gradient: Callable[[Any], Any] = no_gradient

    @property
    def has_data(self) -> bool:
        """Whether the liars have training data."""
        return self.wrong_model is not no_wrong_model and self.gradient is not no_gradient


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """A rule that takes the mean of some ranks of each coordinate, at victims whom all their liars tell the same.

    own           (V,) row of each victim
    honest        (V, J) rows of the honest values that are ranked, the first count (V,) of each line
    lies          (V,) how many lies are ranked with them
    lower, upper  (V,) the lowest rank that counts, and the one after the highest; equal if a victim keeps its own model
    apart         whether its own value is not ranked but counts in the mean
    """

    own: Integers
    honest: Integers
    count: Integers
    lies: Integers
    lower: Integers
    upper: Integers
    apart: bool


@dataclass(frozen=True, kw_only=True)
class View:
    """What liars see in one round: everything. `models` is read-only; `make_view` creates it.

    >>> import byzmesh as bm
    >>> def echo(view, state):
    ...     row = np.zeros(len(view.scene.liar), int)
    ...     return bm.Forged(view.scene.liar, view.scene.victim, row, view.models, rows=view.models[:1]), state
    >>> bm.forge(bm.Attack("echo", echo), bm.network("paper/two-castle"), np.arange(10.0)[:, None])[7, 0]
    array([0.])
    """

    models: Any
    """(N, D) what the honest workers send in this round, a NumPy array."""
    scene: Scene
    round: Round = FIRST
    respond: Callable[[Any], Any] | None = None
    """The rule in use: messages (F, D), one per pair, or (V, D), one per victim from all its liars -> (N, D) what the
    honest workers' models would become."""
    weigh: Weigh | None = None
    """The same in the span of M vectors, for rules that only use inner products: their Gram matrix (M, M) and T trials
    (T, V, M), coefficients of what each victim's liars tell it -> (T, V, M) coefficients of the victim's new model. The
    first N vectors are the honest models, and all M are relative to one point."""
    ranks: Ranks | None = None
    """The same for rules that take the mean of some ranks of each coordinate."""
    foresee: Callable[[Attack, State, int], float] | None = None
    """How bad the honest workers would be after so many rounds, this one included, of another attack in some state:
    1 - mean accuracy, or the mean loss of a problem without accuracy; infinite if they diverge. Only in rounds that
    `Attack.horizon` divides."""
    before: Any = None
    """(N, D) the honest workers' models before the local steps of this round; None among peers, who do not send it."""


@dataclass(frozen=True)
class Combination:
    """Messages as linear combinations: message q = sum_j coefficient[q, j] * models[index[q, j]]."""

    index: Integers
    coefficient: Floats


@dataclass(frozen=True)
class Forged:
    """The messages of one round: a row for each distinct message, and which pair sends which row.

    `forged[liar, victim]` is that pair's message, a (D,) array. Exactly one of `rows` and `combination` is given.

    >>> import byzmesh as bm
    >>> forged = bm.forge("sign-flipping", bm.network("paper/two-castle"), np.ones((10, 2)))
    >>> len(forged), forged[7, 0]
    (18, array([-1., -1.]))
    """

    liar: Integers
    victim: Integers
    row: Integers
    """(F,) message row of each pair."""
    models: Any = field(repr=False)
    _: KW_ONLY
    rows: Any = None
    """(Q, D) messages, or None if they are combinations; of another type than the models they are converted."""
    combination: Combination | None = None

    def __post_init__(self) -> None:
        if self.rows is not None and isinstance(self.models, np.ndarray):
            with np.errstate(over="ignore"):  # infinity, which counts as silence
                object.__setattr__(self, "rows", np.asarray(self.rows, self.models.dtype))

    def __len__(self) -> int:
        return len(self.liar)

    def dense(self) -> Any:
        """(Q, D) all distinct messages."""
        if self.combination is None:
            return self.rows
        matrix = np.zeros((len(self.combination.index), len(self.models)), self.models.dtype)
        lines = np.arange(len(matrix))[:, None]
        np.add.at(matrix, (lines, self.combination.index), self.combination.coefficient.astype(matrix.dtype))
        return matrix @ self.models

    def __getitem__(self, pair: tuple[int, int]) -> Any:
        liar, victim = pair
        found = np.flatnonzero((self.liar == liar) & (self.victim == victim))
        if found.size == 0:
            raise KeyError(f"no message from {liar} to {victim}: not a pair of a liar and its honest neighbour")
        line = int(self.row[found[0]])
        if self.combination is None:
            return self.rows[line]
        coefficient = self.combination.coefficient[line].astype(self.models.dtype)
        return coefficient @ self.models[self.combination.index[line]]


def no_state(scene: Scene) -> State:
    """`init` of an attack that prepares nothing."""
    return None


def unchanged(view: View, state: State) -> State:
    """`observe` of an attack that remembers nothing of rounds in which it is not told."""
    return state


@dataclass(frozen=True, repr=False)
class Attack:
    """What the liars do: two pure functions and facts about them.

    >>> import byzmesh as bm
    >>> bm.attack("ipm", eps=0.5)
    attack('IPM', eps=0.5)
    """

    name: str
    forge: Callable[[View, State], tuple[Forged, State]]
    _: KW_ONLY
    init: Callable[[Scene], State] = no_state
    observe: Callable[[View, State], State] = unchanged
    """The state after a round in which others speak for the attack (`late`, `adaptive`), or in which a changing network
    lets nobody hear a liar: what it remembers of it."""
    options: Mapping[str, Any] = field(default_factory=dict)
    poison: Mapping[str, Any] | None = None
    """How the liars poison their own data while following the protocol; `forge` is then not called.
    {"kind": "labels"}: labels C - 1 - y; {"kind": "backdoor", ...} and {"kind": "phrase", ...}: a trigger in
    some samples."""
    fixed: bool = False
    """Whether `forge` returns the same combination of honest models in every round and leaves the state as it is: what
    depends on it is then prepared once."""
    needs_response: bool = False
    """Whether `View.respond` must be given."""
    needs_data: bool = False
    """Whether `Scene.wrong_model` and `Scene.gradient` must be there."""
    horizon: int = 0
    """`View.foresee` is given in every round that is a multiple of this; 0: never."""

    def __repr__(self) -> str:
        return as_call("attack", self.name, self.options)

    @property
    def poisons_data(self) -> bool:
        """Whether the liars train."""
        return self.poison is not None


def forged_by(attack: Attack, view: View, state: State) -> tuple[Forged, State]:
    """The messages of an attack in a view; a wrong shape is a `ConfigError` that names the attack and both shapes."""
    forged, after = attack.forge(view, state)
    pairs, wide = len(forged.liar), view.models.shape[1]
    if not len(forged.victim) == len(forged.row) == pairs:
        lengths = f"{pairs}, {len(forged.victim)} and {len(forged.row)}"
        raise ConfigError(f"attack {attack.name}: liar, victim and row must have the same length, got {lengths}")
    if forged.combination is None:
        shape = np.shape(forged.rows)
        if len(shape) != 2 or shape[1] != wide:
            raise ConfigError(f"attack {attack.name}: messages must be of shape (Q, D) = (Q, {wide}), got {shape}")
    else:
        shape = forged.combination.index.shape
        if len(shape) != 2 or forged.combination.coefficient.shape != shape:
            raise ConfigError(
                f"attack {attack.name}: index and coefficient of a combination must have the same shape (Q, J), "
                f"got {shape} and {forged.combination.coefficient.shape}"
            )
    if not _within(forged.row, shape[0]):
        raise ConfigError(f"attack {attack.name}: rows must be from 0 to {shape[0] - 1}, got {int(forged.row.max())}")
    return forged, after


@exact
def _within(rows: Any, messages: Any) -> bool:
    """Whether every row is one of so many messages."""
    outside = 0
    for row in rows:
        outside += row < 0 or row >= messages
    return outside == 0


attacks: Registry[Attack] = Registry("attack", "byzmesh.attacks", ("byzmesh.attacks",), Attack)


def silence(view: View) -> Forged:
    """No message at all."""
    none = np.zeros(0, np.int64)
    return Forged(none, none, none, view.models, rows=view.models[:0])
