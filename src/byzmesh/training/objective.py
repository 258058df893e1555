"""Whose losses count how much: every worker the same, or every sample.

    workers   f = sum_n f_n / N                           the default
    samples   f = sum_n (s_n / s) f_n,  s = sum_n s_n     s_n samples at site n

Workers take the same local steps in both cases. What changes is the network's mixing weights: their stationary
distribution is 1 / N or s_n / s (networks/weights.py), so that exchanges leave that average of all models where it is.
For `samples` the data are divided among all sites of the network, those of liars too: a liar weighs what its site has,
and the honest sites' data do not depend on who lies.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.networks import Network
from byzmesh.problems.base import Problem, Task
from byzmesh.problems.data.partition import partitions
from byzmesh.problems.data.split import Sites
from byzmesh.types import Integers

OBJECTIVES = ("workers", "samples")


def sites_of(objective: str, problem: Problem, network: Network, liars_train: bool = False) -> Sites | None:
    """Whose rows a task has if its data are divided among all sites of a network; None: among the honest ones.

    >>> import byzmesh as bm
    >>> sites_of("samples", bm.problem("softmax"), bm.network("chain", n=3, byzantine=[0])).of_row
    array([1, 2])
    """
    partition = problem.options.get("partition")
    by_site = partition is not None and getattr(partitions.build(partition), "by_site", False)
    if objective == "workers" and not by_site:
        return None
    rows = np.concatenate([network.honest, network.byzantine]) if liars_train else network.honest
    return Sites(count=network.n, of_row=rows)


def site_samples(task: Task) -> Integers:
    """(n,) how many samples each site has, for a task that was bound with `sites_of`."""
    holder: Any = getattr(task, "samples", None)
    split = getattr(task, "split", None) or getattr(holder, "split", None)
    if split is None or split.at_sites is None:
        raise ConfigError("objective samples needs a problem whose samples are divided among sites; use workers")
    sizes: Integers = split.at_sites
    return sizes


def weighed(problem: Problem, network: Network, seed: int) -> Network:
    """The network with weights by the samples that the problem gives each of its sites.

    >>> import byzmesh as bm
    >>> parts = {"name": "sizes", "shares": [1, 2, 3]}
    >>> weighed(bm.problem("softmax", partition=parts), bm.network("chain", n=3), seed=0).target.round(3)
    array([0.167, 0.333, 0.5  ])
    """
    everybody = network.with_byzantine("none")
    task = problem.bind(workers=network.n, seed=seed, sites=sites_of("samples", problem, everybody))
    return network.with_samples(site_samples(task))
