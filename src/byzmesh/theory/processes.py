"""What can be said about a network that changes: liars in an inbox, expected contraction, joint connectivity.

Let W be the matrix by which the honest workers of a round would average if they knew the liars: w_nm = w'_nm for honest
m, the rest is the receiver's own. For models x with mean 0 (J = 1 1^T / N),

    E ||(I - J) W x||^2  <=  E ||W x||^2  =  x^T E[W^T W] x  <=  lambda ||x||^2

lambda the largest eigenvalue of E[W^T W] on the vectors of mean 0: by this factor the squared disagreement shrinks in
expectation, in every round whose links are drawn independently. It is

    drawn   from the mean of W^T W over rounds, with a basic bootstrap interval over groups of rounds; or
    exact   for link loss with equal or Metropolis-Hastings weights: E[W^T W] = sum_n E[w_n w_n^T] over the rows, and
            given how many of its d messages n gets, all subsets are equally likely and the senders' own degrees of the
            round are independent binomials

lambda < 1 needs no round to be connected. Where lambda = 1, a *window* of rounds may still be jointly connected: the
union of its honest links leads from everybody to everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from byzmesh import rng
from byzmesh.checks import whole
from byzmesh.errors import ConfigError
from byzmesh.networks import Links, Network
from byzmesh.networks.processes import Meetings, Process
from byzmesh.networks.processes.quantile import Quantile, chance_exceeded
from byzmesh.networks.weights import EXPLICIT, mixing_weights
from byzmesh.types import Floats

LARGEST = 500
"""Honest workers up to which the eigenvalue of a dense matrix is computed."""
GROUPS, RESAMPLES = 20, 200
_T = 2.262
"""97.5% of Student's t with 9 degrees of freedom: half of the groups."""


@dataclass(frozen=True)
class Estimate:
    """A number with its 95% interval; the interval is the number itself where it is exact."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        exact = self.low == self.high
        return f"{self.value:.4f} (exact)" if exact else f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


def expected_contraction(network: Network, chosen: Sequence[Process], *, rounds: int = 400, seed: int = 0) -> Estimate:
    """lambda of E[W^T W]: exact for link loss alone, otherwise from this many drawn rounds.

    >>> import byzmesh as bm
    >>> print(expected_contraction(bm.network("complete", n=6, weights="equal"), bm.process("link-loss", p=0.2)))
    0.0500 (exact)
    """
    honest = len(network.honest)
    if honest > LARGEST:
        raise ConfigError(f"expected contraction is for at most {LARGEST} honest workers, got {honest}")
    alone = len(chosen) == 1 and chosen[0].name == "link-loss"
    if alone and network.weights in ("equal", "metropolis-hastings"):
        value = _largest(_link_loss_square(network, 1.0 - float(chosen[0].options["p"])))
        return Estimate(value, value, value)
    whole("rounds", rounds, GROUPS)
    meetings = Meetings(chosen, network.links, network.lies, seed)
    groups = np.zeros((GROUPS, honest, honest))
    for number in range(rounds):
        mixing = honest_mixing(network, meetings.at(number).links)
        groups[number % GROUPS] += mixing.T @ mixing
    groups /= np.bincount(np.arange(rounds) % GROUPS)[:, None, None]
    draw = rng.generator(seed, rng.PROCESS, 1)
    again = [_largest(groups[draw.integers(0, GROUPS, GROUPS)].mean(axis=0)) for _ in range(RESAMPLES)]
    # the largest eigenvalue of a mean is too large on average; resampling makes the same error once more
    found = _largest(groups.mean(axis=0))
    low, high = 2.0 * found - np.quantile(again, [0.975, 0.025])
    return Estimate(2.0 * found - float(np.mean(again)), min(float(low), _below(groups)), float(high))


def _below(groups: Floats) -> float:
    """What lambda exceeds in 97.5% of all cases, also where it belongs to many vectors and resampling is misled.

    The vector is that of one half of the groups, and the other half says by how much it is stretched: no more than
    lambda, in expectation. Student's t.
    """
    flat = np.eye(groups.shape[1]) - 1.0 / groups.shape[1]
    vector = np.linalg.eigh(flat @ groups[::2].mean(axis=0) @ flat)[1][:, -1]
    stretched = np.einsum("i,gij,j->g", vector, groups[1::2], vector)
    return float(stretched.mean() - _T * stretched.std(ddof=1) / np.sqrt(len(stretched)))


def honest_mixing(network: Network, links: Links) -> Floats:
    """(N, N) W of a round with these links: the honest block of the weights, the rest on the diagonal."""
    if network.weights == EXPLICIT:
        link = network.link_weight[network.links.find(links.receiver, links.sender)]
    else:
        link = mixing_weights(links, network.weights).link
    row = np.full(network.n, -1, np.int64)
    row[network.honest] = np.arange(len(network.honest))
    inner = (row[links.receiver] >= 0) & (row[links.sender] >= 0)
    mixing = np.zeros((len(network.honest), len(network.honest)))
    mixing[row[links.receiver[inner]], row[links.sender[inner]]] = link[inner]
    np.fill_diagonal(mixing, 1.0 - mixing.sum(axis=1))
    return mixing


def _largest(square: Floats) -> float:
    """The largest eigenvalue of a symmetric matrix on the vectors of mean 0."""
    n = len(square)
    flat = np.eye(n) - 1.0 / n
    return float(np.linalg.eigvalsh(flat @ square @ flat)[-1])


def _link_loss_square(network: Network, keep: float) -> Floats:
    """(N, N) E[W^T W] when every directed message arrives with probability `keep`."""
    from scipy.stats import binom

    links, degree = network.links, network.degree
    row = np.full(network.n, -1, np.int64)
    row[network.honest] = np.arange(len(network.honest))
    total = np.zeros((len(network.honest), len(network.honest)))
    equal = network.weights == "equal"
    for node in network.honest.tolist():
        heard = links.of(node)
        near = heard[row[heard] >= 0]
        d, place, here = len(heard), row[near], row[node]
        mean, second = np.zeros(len(near)), np.zeros((len(near), len(near)))
        for came in range(1, d + 1):
            chance = float(binom.pmf(came, d, keep))
            one, square = np.empty(len(near)), np.empty(len(near))
            for slot, other in enumerate(near.tolist()):
                theirs = np.arange(degree[other] + 1)
                law = binom.pmf(theirs, degree[other], keep)
                share = 1.0 / (1.0 + (np.full_like(theirs, came) if equal else np.maximum(theirs, came)))
                one[slot], square[slot] = law @ share, law @ share**2
            arrives, both = came / d, came * (came - 1) / (d * (d - 1)) if d > 1 else 0.0
            mean += chance * arrives * one
            table = both * np.outer(one, one)
            np.fill_diagonal(table, arrives * square)
            second += chance * table
        total[np.ix_(place, place)] += second
        own = mean - second.sum(axis=1)
        total[here, place] += own
        total[place, here] += own
        total[here, here] += 1.0 - 2.0 * mean.sum() + second.sum()
    return total


@dataclass(frozen=True, kw_only=True)
class JointConnectivity:
    """In how many of the drawn windows of rounds the honest workers reach each other, with a 95% interval."""

    window: int
    windows: int
    connected: int
    low: float
    high: float


def joint_connectivity(
    network: Network, chosen: Sequence[Process], window: int = 10, *, windows: int = 100, seed: int = 0
) -> JointConnectivity:
    """How often the union of the honest links of `window` rounds leads from everybody to everybody (Clopper-Pearson).

    The windows follow each other. Where rounds depend on earlier ones, as in `churn`, each is drawn with another seed:
    the interval is one of independent draws.

    >>> import byzmesh as bm
    >>> net = bm.network("complete", n=8)
    >>> [joint_connectivity(net, bm.process("matching"), window).connected for window in (1, 20)]
    [0, 100]
    """
    from scipy.stats import beta

    whole("window", window, 1)
    apart = any(one.remembers for one in chosen)
    meetings = Meetings(chosen, network.links, network.lies, seed)
    connected = 0
    for place in range(windows):
        if apart:
            meetings = Meetings(chosen, network.links, network.lies, seed + place)
        rounds = [meetings.at(number).links for number in range(place * window, (place + 1) * window)]
        receiver, sender = (np.concatenate([getattr(links, end) for links in rounds]) for end in ("receiver", "sender"))
        inner, _ = Links.of_pairs(receiver, sender, network.n).among(network.honest)
        connected += bool(inner.reach().all() and inner.reversed().reach().all())
    low = 0.0 if connected == 0 else float(beta.ppf(0.025, connected, windows - connected + 1))
    high = 1.0 if connected == windows else float(beta.ppf(0.975, connected + 1, windows - connected))
    return JointConnectivity(window=window, windows=windows, connected=connected, low=low, high=high)


def statements(
    network: Network, chosen: Sequence[Process], *, rounds: int, delta: float = 0.05, window: int = 10, seed: int = 0
) -> list[str]:
    """What is known about a network under these processes, in words; for `byzmesh certify`.

    >>> import byzmesh as bm
    >>> net = bm.network("complete", n=30, byzantine=3)
    >>> for line in statements(net, bm.process("random-pull", s=8), rounds=1000): print(line)
    inboxes: with probability 0.95 no honest inbox of 1000 rounds holds more than 3 liars (exact tails).
    contraction: lambda of E[W^T W] is ...
    connectivity: in 100 of 100 windows of 10 rounds the honest workers reach each other, [0.964, 1.000].
    """
    told = []
    try:
        bound = Quantile(delta).bound(chosen, network, rounds)
        how = "exact tails"
        if chosen and chosen[0].replaces:
            how = "the schedule says so"
        elif any(one.shared for one in chosen):
            how = f"an upper bound on the tails: {chance_exceeded(chosen, network, rounds)[bound]:.2g}"
        told.append(
            f"inboxes: with probability {1 - delta:g} no honest inbox of {rounds} rounds holds more than {bound} liars "
            f"({how})."
        )
    except ConfigError as error:
        told.append(f"inboxes: {str(error).removeprefix('f quantile: ')}.")
    contraction = expected_contraction(network, chosen, seed=seed)
    word = "shrinks the expected squared disagreement in every round"
    if any(one.oldest for one in chosen):
        word = "counts every message as of this round and proves nothing where some are late"
    elif any(one.remembers for one in chosen):
        word = "is a mean over rounds that depend on each other, no bound for a single one"
    elif contraction.high >= 1.0:
        word = "proves nothing"
    told.append(f"contraction: lambda of E[W^T W] is {contraction}, which {word}.")
    joint = joint_connectivity(network, chosen, window, seed=seed)
    told.append(
        f"connectivity: in {joint.connected} of {joint.windows} windows of {window} rounds the honest workers reach "
        f"each other, [{joint.low:.3f}, {joint.high:.3f}]."
    )
    return told
