"""What somebody should know before believing a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

APART = (
    "problem.partition is one-class and somebody lies: no rule here is safe then. Where all start at zero, "
    "sign-flipping alone takes IOS below 55% on two of the paper's graphs and profile guarded to 10%. Share some data "
    "first (partition: {name: dirichlet, alpha: 0.3})"
)
FAR = ", or take the published start (init: normal, scale: 6), which helps IOS against lies that do not know it"
"""Where the problem has that start: a module has not."""


def advice(config: Mapping[str, Any]) -> str | None:
    """What the recommendation says about a canonical config; None where it has nothing to say.

    >>> from byzmesh.config.schema import resolve
    >>> told = {"network": "paper/two-castle", "problem": {"name": "softmax", "partition": "one-class"}}
    >>> advice(resolve(told)), advice(resolve({**told, "attack": "alie", "profile": "paper"}))
    (None, None)
    >>> advice(resolve({**told, "attack": "alie"})).split(":")[0]
    'problem.partition is one-class and somebody lies'
    """
    problem = config["problem"]
    apart = (problem.get("partition") or {}).get("name") == "one-class"
    if not apart or config["attack"]["name"] == "none" or problem.get("init") == "normal":
        return None
    return f"{APART}{FAR if 'scale' in problem else ''}; docs/recommendation.md says more"
