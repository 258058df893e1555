"""How much is unavoidable: what no rule can rule out that is told only the graph and how many lie.

Theorem (after the lower bound of Allouah et al., "Robust distributed learning: tight error bounds and breakdown point
under data heterogeneity", NeurIPS 2023, which has a fourth of it and a second constant; the idea is in Karimireddy et
al., ICLR 2022). Let N honest workers and B < N liars be given. No algorithm that is told the graph and B guarantees
every honest worker an x with

    ||grad f(x)||^2 < B / (N - B) zeta^2        for all losses with (1/N) sum_n ||grad f_n - grad f||^2 <= zeta^2

(in expectation, if the algorithm draws at random).

Proof. Let the first B workers have the losses |x + a|^2 / 2, the last B |x - a|^2 / 2 and the N - B others |x|^2 / 2,
and let everybody send what that calls for. Either the last B lie: the honest mean of the minima is -a B / N; or the
first B lie: it is a B / N. The N - B others cannot tell these apart and return the same x. As |x + v|^2 + |x - v|^2 >=
2 |v|^2 with v = a B / N, in one of the two worlds ||grad f(x)||^2 >= |a|^2 B^2 / N^2 (if x is random, in expectation).
In both zeta^2 = |a|^2 (B / N) (1 - B / N).                                                                          []

If B >= N, N - 1 of the liars do this and the others are silent: (N - 1) zeta^2. More is not possible: who listens to
nobody and ends at the minimum of its own loss, if it has one, has ||grad f||^2 <= (N - 1) zeta^2.

What the algorithm is told must be true of both worlds. B is, and so is one bound f for all workers if there are B
honest workers who might lie within it: of whom nobody has more than f as neighbours (f = B always has them; f: max has
them on every graph of reports/audit and of the paper). `f: exact`, each worker's own number of lying neighbours, may
tell the worlds apart. If ten workers hear each other, and two liars are heard by worker 0 only, the other nine are told
that nobody lies to them; if all believe these nine, nothing is lost. But where k liars can be exchanged for k honest
workers so that all others have as many lying neighbours as before (stand_ins.py), the worlds look alike to these also
if they know that number. Let the k take the part of the first B, the liars that they replace the part of the last, and
the other liars be silent: all of the above holds for `f: exact` with k instead of B.

It is about the worst losses of that heterogeneity, not about yours: a rule may do better on your data, but a rule that
always does better on such data does not exist. zeta is measured after some steps of gradient descent, which is where
it matters (it need not be the largest); delta_out, the paper's, is the largest deviation of one worker there.

The same idea in units of accuracy, for classifiers and whatever the losses: if nothing is known of the data, no
algorithm that is told as much as above guarantees that every honest worker's model labels more than 1 - B / (2 N) of
the honest workers' data rightly (on average, if it draws at random), if all have equally much. Proof. Let the last B
have the inputs of the first B, each with another label. In two worlds everybody follows the algorithm on this data;
either the last B are the liars or the first. The N - B workers that are honest in both cannot tell, so they predict the
same, and of every contested input and its two labels at most one is right: over both worlds at most half of the
contested B / N. (If B >= N, N - 1 of the liars suffice for this.)                                                   []

This one does not grow with how much data differ, and so it is what to hold a low accuracy against: below it, that the
loss of accuracy had to be is not shown.

Caution has its price, too. Call a rule *exact among likes* if honest workers who have the same data, and each at most
f_n lying neighbours, end where they would end without liars. That is the least one asks of a rule, and from one start
with exact gradients every rule with a finite contraction constant is: honest models that agree stay together, and there
is nothing for lies to hide in. Let U be workers of whom every other worker has at most f_n as neighbours, and let all
others have the same data. If *nobody* lies, a rule that is exact among likes makes the others end as if U did not
exist. Proof. In another world U are liars who follow the algorithm on this data. The others cannot tell, and there they
must end so.                                                                                                         []

So no such rule is, on all data, near the plain mean if nobody lies: classes that only U have are
lost, |U| of the N workers' data. Between likes with noise in their gradients U moves nobody by more than rho times
that noise in a round. How much is lost where all differ from each other is not said by this, and measured.

Nor can a rule take in what single workers alone have and leave lies out. Let a rule see its inbox only (no memory, no
data), not depend on the neighbours' order, and commute with translations and with exchanging coordinates: rules by
distance and rules by coordinate both do. Let all neighbours weigh the same, and everybody's message be t away from one
point c, each up a coordinate of its own, which is how workers differ who each have a class that nobody else has; the
liars have coordinates that no honest worker has. Then the output has the same share q of every neighbour, the liars
included. Proof. Let c be zero, by a translation. Exchange the coordinates of a liar and of an honest neighbour: the
inbox is the same but for its order, so both have the same coordinate of the output.                                 []

If ties are broken by order it holds on average over who lies, and a liar who comes a little nearer wins them. For rules
by distance coordinates may be turned: lies of that length are taken in *any* directions across the honest ones and each
other. (Liars who agree on one point, as `target` does, are not covered: that is measured.) So q is one number, and it
is asked to be large by those who want to learn from single workers and small by those who fear lies. It may differ from
one t, f or number of neighbours to another: that no rule does well on one network with a large q and on another with a
small one is not said, nor how much accuracy a q costs.

A third limit is the graph's. With symmetric weights let b be the most that liars weigh at a worker and mu_2 the
algebraic connectivity of the honest graph: there are graphs with b = mu_2 / 2 on which no rule makes the honest workers
agree (Gaucher, Dieuleveut and Hendrikx, 2024; quoted, not proved here), so no proof for all graphs can go beyond that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.networks import Network
from byzmesh.networks.fault_bounds import by_weight, unlimited
from byzmesh.problems.base import Task, problems
from byzmesh.studies.audit.lies import starts_of
from byzmesh.studies.audit.stand_ins import stand_ins
from byzmesh.theory.gossip import spectrum
from byzmesh.training.objective import sites_of, weighed

DESCENT = 8
"""Steps of gradient descent before the heterogeneity is measured."""


@dataclass(frozen=True, kw_only=True)
class Unavoidable:
    """What no rule can rule out that is told only the graph and how many lie.

    gradient   lower bound on the squared gradient norm, B / (N - B) zeta^2; for B >= N that of N - 1 liars
    zeta       root mean square deviation of the honest workers' gradients; like the next and `initial` NaN if workers
               count by their samples, of which this is not proved
    delta_out  the largest deviation of one of them
    b          the largest weight of lies at a worker; NaN if a process changes the network
    mu_2       algebraic connectivity of the honest graph; NaN if the weights are not symmetric, or change
    initial    squared gradient norm of the untrained model: zero, or the first worker's if no run can begin there
    tolerable  the smallest f_n under `f: tolerable`: so many workers may be ignored if nobody lies; 0 if weights change
    classifies  whether there are labels to be right about, and workers count the same
    stand_ins  honest workers for whom as many liars can be exchanged unnoticed, although each worker knows how many of
               its neighbours lie; the network must not change
    """

    honest: int
    liars: int
    zeta: float
    delta_out: float
    b: float
    mu_2: float
    initial: float
    tolerable: int = 0
    classifies: bool = True
    stand_ins: tuple[int, ...] = ()

    @property
    def gradient(self) -> float:
        """The lower bound.

        >>> Unavoidable(honest=10, liars=2, zeta=2.0, delta_out=3.0, b=0.1, mu_2=0.7, initial=1.0).gradient
        1.0
        """
        return lower_bound(self.honest, self.liars, self.zeta)

    @property
    def accuracy(self) -> float:
        """100 (1 - B / (2 N)): the most accuracy in percent, on the honest workers' data, that a rule can guarantee.

        NaN without labels.

        >>> Unavoidable(honest=10, liars=2, zeta=2.0, delta_out=3.0, b=0.1, mu_2=0.7, initial=1.0).accuracy
        90.0
        """
        return self._accuracy(self.liars)

    def _accuracy(self, exchanged: int) -> float:
        return 100.0 * (1.0 - min(exchanged, self.honest - 1) / (2.0 * self.honest)) if self.classifies else math.nan

    @property
    def hopeless(self) -> bool:
        """Whether the untrained model is already better than what any rule can guarantee."""
        return self.initial <= self.gradient

    def sentences(self) -> tuple[str, ...]:
        """What is proved, a limit each."""
        if self.honest == 1:
            return ("With one honest worker nothing of this is unavoidable: it may train alone.",)
        if math.isnan(self.zeta):
            told = [
                "Workers count by their samples here; what no rule can guarantee is proved where they count the same."
            ]
        else:
            told = [*self._limits(), self._exact()]
        if self.tolerable:
            everybody = self.honest + self.liars
            told.append(
                f"With f: tolerable, at least {self.tolerable} here if the rule allows so many, a rule that is exact "
                "among likes ignores as many workers that alone have some data if all others are alike"
                + ("" if math.isnan(self.zeta) else f": {self.tolerable / everybody:.0%} of all data")
                + f", also if all {everybody} are honest."
            )
        if math.isfinite(self.mu_2):
            limit = "above" if 2.0 * self.b >= self.mu_2 else "below"
            told.append(
                f"Liars weigh up to b = {self.b:.3g} at a worker, {limit} mu_2 / 2 = {self.mu_2 / 2:.3g}; from there "
                "on no rule makes all agree on all such graphs (Gaucher et al. 2024)."
            )
        return tuple(told)

    def __str__(self) -> str:
        return "\n".join(["What is unavoidable:", "", *(f"- {sentence}" for sentence in self.sentences())])

    def _limits(self) -> list[str]:
        """What holds for a rule that is told only the graph and how many lie."""
        liars = f"{self.liars} liars" if self.liars > 1 else "one liar"
        told = [
            f"No rule that is told only the graph and how many lie ({liars} beside {self.honest} honest workers) can "
            f"guarantee a squared gradient norm below {self.gradient:.3g} on all losses that differ as much as here "
            f"(zeta {self.zeta:.3g}, delta_out {self.delta_out:.3g}; after Allouah et al., NeurIPS 2023). "
            f"The untrained model has {self.initial:.3g}"
            + (", already below that: no such guarantee is better than not training." if self.hopeless else ".")
        ]
        if self.classifies:
            told.append(
                "If nothing is known of the data, no such rule can guarantee every worker a classifier that is right "
                f"on more than {self.accuracy:.1f}% of the honest workers' data: liars may have the inputs of as many "
                "honest workers with other labels."
            )
        return told

    def _exact(self) -> str:
        """What holds for a rule that is told each worker's own number of liars."""
        told = "a rule that is told more, each worker's own number of liars (f: exact)"
        count = len(self.stand_ins)
        if count == 0:
            return f"For {told}, nothing of this is proved."
        who = f"worker{'s' if count > 1 else ''} {', '.join(map(str, self.stand_ins))}"
        why = f"{who} might lie instead of as many liars, and nobody else would notice"
        if count == self.liars:
            both = "Both hold" if self.classifies else "It holds"
            return f"{both} for {told}, too: {why}."
        bounds = f"{lower_bound(self.honest, count, self.zeta):.3g}"
        bounds += f" and {self._accuracy(count):.1f}%" if self.classifies else ""
        return f"For {told}, it is {bounds}: {why}."


def lower_bound(honest: int, liars: int, zeta: float) -> float:
    """B / (N - B) zeta^2, of at most N - 1 liars.

    >>> lower_bound(5, 2, 3.0), lower_bound(5, 4, 3.0), lower_bound(5, 9, 3.0)
    (6.0, 36.0, 36.0)
    """
    exchanged = min(liars, honest - 1)
    return exchanged / (honest - exchanged) * zeta**2


def unavoidable(config: Mapping[str, Any]) -> Unavoidable:
    """The limits of a canonical config's network and data."""
    network, problem = Network.from_spec(config["network"]), problems.build(config["problem"])
    objective = config.get("objective", "workers")
    if objective == "samples":
        network = weighed(problem, network, config["seed"])
    task = problem.bind(
        workers=len(network.honest),
        seed=config["seed"],
        dtype=config["dtype"] if "module" in config["problem"] else "float64",
        threads=config["threads"],
        sites=sites_of(objective, problem, network),
    )
    zeta, delta_out, initial = (math.nan,) * 3 if objective == "samples" else _differences(task, config)
    changes = bool(config.get("process"))
    seen = None if changes else spectrum(network)
    bounds = None if changes else by_weight("tolerable", network.layout, unlimited)
    return Unavoidable(
        honest=len(network.honest),
        liars=len(network.byzantine),
        zeta=zeta,
        delta_out=delta_out,
        b=math.nan if changes else float(network.lying_weight.max()),
        mu_2=math.nan if seen is None else seen.mu_2,
        initial=initial,
        tolerable=0 if bounds is None else int(bounds.min()),
        stand_ins=() if changes else tuple(stand_ins(network)[1].tolist()),
        classifies=objective == "workers" and "accuracy" in task.evaluate(np.asarray(task.initial())[:1]),
    )


def _differences(task: Task, config: Mapping[str, Any]) -> tuple[float, float, float]:
    """zeta and delta_out after some steps of gradient descent, and the squared gradient norm before them."""
    starts = starts_of(config["problem"])
    model = np.zeros(task.dimension) if "zero" in starts else np.asarray(task.initial())[0].astype(np.float64)
    gradients = np.asarray(task.local_gradients(model), np.float64)
    initial = float((gradients.mean(axis=0) ** 2).sum())
    step = 1.0
    with suppress(ConfigError):  # a module does not know it
        step = 1.0 / task.smoothness()
    for _ in range(DESCENT):
        mean = gradients.mean(axis=0)
        there = np.asarray(task.local_gradients(model - step * mean), np.float64)
        if np.linalg.norm(there.mean(axis=0)) < np.linalg.norm(mean):
            model, gradients, step = model - step * mean, there, 2.0 * step
        else:
            step /= 4.0
    square = ((gradients - gradients.mean(axis=0)) ** 2).sum(axis=1)
    return math.sqrt(float(square.mean())), math.sqrt(float(square.max())), initial
