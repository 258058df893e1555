"""What a run tells about its data: epsilon over the rounds, and the noise for a target.

Three statements, each about a change of the data that the messages of all rounds hide up to (epsilon, delta). They are
about what honest workers send, whatever receivers do with it, liars included, and all but the first need no trust:

    samples    one sample of a site replaced by another. Needs `local: {clip_samples: C}` and noise that stays with its
               sender: a round's message then changes by at most 2 C step / B. With `batching: distinct` a round uses a
               random part B / m of the site's m samples, which nobody else may know; without that, every round in
               which the sample takes part counts in full
    worker     all data of a site replaced. Needs the stage `clip` directly before the noise: given earlier messages, a
               message changes by at most 2 radius
    noise      local: everybody else works together; each round has the sender's own noise sigma.
               pairwise: those who work together know only their own pairs. The noise of all other workers' messages
               has covariance S = sigma^2 I + sigma_pair^2 L, L the Laplacian of their links; what hides worker n is
               1 / (S^-1)_nn, at least sigma^2. Without a noise of its own (sigma = 0) the sum of all messages is
               exact, and there is no epsilon

A run outside of these conditions has no epsilon here, and `NoEpsilon` says why.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.channels import Stage, channel_stages
from byzmesh.channels.clip import Clip
from byzmesh.channels.gaussian_noise import GaussianNoise
from byzmesh.channels.pair_noise import PairNoise
from byzmesh.checks import fraction
from byzmesh.errors import ConfigError
from byzmesh.networks import Network
from byzmesh.networks.processes import process as make_process
from byzmesh.problems.base import Sampled, problems
from byzmesh.rules.base import Rule, rules
from byzmesh.simulation.carrying import check_channel
from byzmesh.sweeps.build import network_as_run
from byzmesh.theory import renyi
from byzmesh.training.local import LocalOptions
from byzmesh.training.objective import sites_of
from byzmesh.training.schedules import schedule
from byzmesh.types import Floats

DELTA = 1e-5


class NoEpsilon(ConfigError):
    """Nothing is proved about the privacy of a run."""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One guarantee.

    about    "samples" or "worker": what is hidden
    against  who looks
    rounds   at which epsilon is given, and epsilon (same length) there
    least    the smallest noise multiplier of a round: noise over sensitivity
    factor   by which all noise must be multiplied for the target; None: there is no target
    """

    about: str
    against: str
    rounds: tuple[int, ...]
    epsilon: tuple[float, ...]
    least: float
    factor: float | None

    def __str__(self) -> str:
        told = ", ".join(f"{spent:.4g} after {rounds}" for rounds, spent in zip(self.rounds, self.epsilon))
        more = "" if self.factor is None else f"; noise times {self.factor:.4g} for the target"
        return f"{self.against}: epsilon {told}{more}"


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """All that is proved about a run."""

    delta: float
    noise: str
    statements: tuple[Statement, ...]

    def __str__(self) -> str:
        lines = [f"Noise: {self.noise}. delta = {self.delta:g}."]
        for about, meaning in MEANING.items():
            found = [told for told in self.statements if told.about == about]
            lines += [meaning, *(f"  {told}" for told in found)] if found else []
        return "\n".join(lines)


MEANING = {
    "samples": "One sample of a site replaced by another:",
    "worker": "All data of a site replaced by others:",
}


def privacy(config: Mapping[str, Any], delta: float = DELTA, target: float | None = None) -> Privacy:
    """What is proved about the privacy of a run with this canonical config; `NoEpsilon` if nothing is.

    target  an epsilon at the last round: every statement then says how much more noise it needs
    """
    fraction("delta", delta, zero=False, one=False)
    stages = channel_stages(config.get("channel"))
    sigma, pair, clip = _noise(stages)
    made: list[Statement] = []
    network = network_as_run(config)
    rule = rules.build(config["rule"])
    check_channel(stages, tuple(make_process(config.get("process"))), rule.sends, network.directed)
    views = _views(network, sigma, pair)
    rounds = config["rounds"]
    if rounds == 0:
        raise NoEpsilon("rounds is 0: nothing is sent, and nothing is told")
    if clip is not None:
        for against, strength in views:
            each = np.full(rounds, strength / (2.0 * clip.radius))
            made.append(_whole("worker", against, each, delta, target))
    why = _no_samples(config, stages, rule)
    if why is None:
        made += _samples(config, network, views, delta, target)
    elif not made:
        raise NoEpsilon(why)
    parts = [f"{name} {size:g}" for name, size in (("own sigma", sigma), ("each pair's sigma", pair)) if size]
    return Privacy(delta=delta, noise=", ".join(parts), statements=tuple(made))


def _noise(stages: Sequence[Stage]) -> tuple[float, float, Clip | None]:
    """(own sigma, pairs' sigma, the clipping of messages or None) of a channel in which nothing else comes before."""
    own = math.sqrt(sum(stage.sigma**2 for stage in stages if isinstance(stage, GaussianNoise)))
    pair = math.sqrt(sum(stage.sigma**2 for stage in stages if isinstance(stage, PairNoise)))
    if own == 0.0:
        raise NoEpsilon(
            "no message has noise of its sender's own"
            + (": that of pairs cancels in the sum" if pair else "")
            + "; add {name: gaussian-noise, sigma: ...} to the channel"
        )
    noisy = [place for place, stage in enumerate(stages) if isinstance(stage, GaussianNoise | PairNoise)]
    for place, stage in enumerate(stages[: noisy[-1]]):
        if isinstance(stage, Clip) and place > noisy[0]:
            raise NoEpsilon("clip shortens the noise before it too; write it before all noise")
        if not isinstance(stage, GaussianNoise | PairNoise | Clip):
            raise NoEpsilon(f"{stage.name} comes before the noise and depends on the data; write it after the noise")
    clips = [stage for stage in stages[: noisy[0]] if isinstance(stage, Clip)]
    return own, pair, min(clips, key=lambda clip: clip.radius, default=None)


def _views(network: Network, sigma: float, pair: float) -> list[tuple[str, float]]:
    """(who looks, standard deviation of the noise that hides the least hidden honest worker from them)."""
    views = [("local, everybody else works together", sigma)]
    if pair:
        nobody = np.zeros(0, np.int64)
        if len(network.byzantine):
            views.append(("pairwise, the liars work together", hiding(network, network.byzantine, sigma, pair)))
        one = min(hiding(network, np.array([node]), sigma, pair) for node in range(network.n))
        views.append(("pairwise, any one worker", one))
        views.append(("pairwise, an outsider who reads every message", hiding(network, nobody, sigma, pair)))
    return views


def hiding(network: Network, together: Any, sigma: float, pair: float) -> float:
    """The standard deviation of the noise that hides the least hidden worker from those who work together.

    >>> import byzmesh as bm
    >>> ring = bm.network("complete", n=5)
    >>> round(hiding(ring, np.array([0]), sigma=0.1, pair=1.0), 4), round(hiding(ring, np.arange(4), 0.1, 1.0), 4)
    (0.1993, 0.1)
    """
    others = np.setdiff1d(np.arange(network.n), together)
    links = network.links.among(others)[0]
    laplacian = np.zeros((len(others), len(others)))
    np.add.at(laplacian, (links.receiver, links.receiver), 1.0)
    np.add.at(laplacian, (links.receiver, links.sender), -1.0)
    size, way = np.linalg.eigh(laplacian)
    # what is zero but for rounding must not be multiplied by pairs' noise that is much larger than one's own
    size = np.where(size > 1e-10 * size[-1], size, 0.0)
    return float(1.0 / math.sqrt((way**2 / (sigma**2 + pair**2 * size)).sum(axis=1).max()))


def _no_samples(config: Mapping[str, Any], stages: Sequence[Stage], rule: Rule) -> str | None:
    """Why single samples have no epsilon; None: they have one."""
    local = LocalOptions.of(config["local"])
    if local.clip_samples is None:
        return "samples' gradients are not bounded; add local: {clip_samples: 1.0}, or the stage clip before the noise"
    if not all(stage.stays for stage in stages if isinstance(stage, GaussianNoise)):
        return "the senders' own models stay without noise, so messages tell of earlier batches; use own: true"
    if local.momentum != "none" or local.optimizer is not None or local.steps > 1 or local.accumulate > 1:
        return "momentum, optimizers and several steps keep exact gradients from message to message; use plain steps"
    if local.outer.name != "none":
        return "the outer step remembers models; use outer: none"
    if rule.sends != "half" or rule.needs_loss or rule.needs_previous:
        return f"rule {rule.name} uses the receiver's data or its exact model again; use another rule"
    return None


def _samples(
    config: Mapping[str, Any], network: Network, views: Sequence[tuple[str, float]], delta: float, target: float | None
) -> list[Statement]:
    problem = problems.build(config["problem"])
    whole = Network.from_spec(config["network"])
    task = problem.bind(
        workers=len(network.honest),
        seed=config["seed"],
        dtype=config["dtype"],
        sites=sites_of(config.get("objective", "workers"), problem, whole),
    )
    if not isinstance(task, Sampled):
        raise NoEpsilon(f"problem {config['problem']['name']} has no samples")
    for row in range(task.workers):
        held = task.share(row)[0]
        if len(np.unique(held)) < held.size:
            raise NoEpsilon("a site has some samples more than once, and batches too; use a partition other than drawn")
    clip = LocalOptions.of(config["local"]).clip_samples or math.inf
    step, rounds = schedule(config["step"]), config["rounds"]
    change = np.array([2.0 * clip * step(k) / task.batch for k in range(rounds)])
    fewest = int(task.sizes()[: task.workers].min())
    made = []
    for against, strength in views:
        with np.errstate(divide="ignore"):
            each = np.where(change > 0.0, strength / change, np.inf)
        if config["problem"].get("batching") == "distinct":
            rate = min(1.0, task.batch / fewest)
            made.append(_sampled(f"{against}, batches secret", each, rate, delta, target))
            made.append(_known(f"{against}, batches known", strength, most_told(task, change), delta, target))
        else:
            # a sample may occur several times in a batch
            made.append(_whole("samples", f"{against}, batches known", each / task.batch, delta, target))
    return made


def most_told(task: Any, change: Floats) -> Floats:
    """(rounds,) the largest sum over the rounds so far of `change` (rounds,) squared that a sample took part in."""
    rows = np.arange(task.workers)
    told, most = np.zeros(task.samples), np.empty(len(change))
    for k, size in enumerate(change):
        drawn = np.unique(task.batches(k, rows)[0])
        told[drawn] += size**2
        most[k] = max(most[k - 1] if k else 0.0, float(told[drawn].max()))
    return most


def _whole(about: str, against: str, each: Floats, delta: float, target: float | None) -> Statement:
    """Every round in full, multipliers `each` (rounds,): exact."""

    def spent(count: int, factor: float) -> float:
        return renyi.gaussian_epsilon(renyi.composed(factor * each[:count]), delta)

    return _statement(about, against, each, spent, target)


def _known(against: str, strength: float, most: Floats, delta: float, target: float | None) -> Statement:
    """Rounds count for a sample only if it takes part: multiplier strength / sqrt(most), exact."""
    with np.errstate(divide="ignore"):
        total = strength / np.sqrt(most)

    def spent(count: int, factor: float) -> float:
        return renyi.gaussian_epsilon(factor * float(total[count - 1]), delta)

    return _statement("samples", against, total, spent, target)


def _sampled(against: str, each: Floats, rate: float, delta: float, target: float | None) -> Statement:
    """A random part of the samples in every round: Renyi divergences add up."""

    def spent(count: int, factor: float) -> float:
        kept = each[:count][np.isfinite(each[:count])] * factor
        if len(np.unique(kept)) > 1:  # a little less noise than there is, in few kinds
            kept = np.exp(np.floor(np.log(kept) / KIND) * KIND)
        total = np.zeros(len(renyi.ORDERS))
        for multiplier, times in zip(*np.unique(kept, return_counts=True)):
            total += times * renyi.sampled_rdp(float(multiplier), rate)
        return renyi.epsilon_of(total, delta)

    return _statement("samples", against, each, spent, target)


KIND = 0.02
"""Noise multipliers of rounds with different steps are rounded down by at most this part."""


def _statement(about: str, against: str, each: Floats, spent: Any, target: float | None) -> Statement:
    shown = tuple(renyi.rounds_to_show(len(each)))
    return Statement(
        about=about,
        against=against,
        rounds=shown,
        epsilon=tuple(spent(count, 1.0) for count in shown),
        least=float(each.min()),
        factor=None if target is None else renyi.noise_for(target, lambda factor: spent(len(each), factor)),
    )
