"""Profiles: named sets of options, each of them visible in the resolved config.

`published` selects the published variant of problem, rule and attack where it differs from the text's definition; each
registration says what that is.
"""

from __future__ import annotations

from typing import Any

from byzmesh.errors import UnknownName, nearest

RECOMMENDED_RULE = "IOS"
"""The rule of a config that names none, to be given wherever a rule is asked for; docs/recommendation.md says why this
one, and when the profile `guarded` is better.

>>> import byzmesh as bm
>>> bm.aggregate(bm.RECOMMENDED_RULE, [0.0], [[1.0], [0.0], [-1.0], [90.0]], f=1)
array([0.])
"""

PROFILES: dict[str, dict[str, Any]] = {
    "text": {
        "rule": {"name": RECOMMENDED_RULE},
        "rounds": 1000,
        "evaluate_every": 100,
        "step": {"name": "inverse-sqrt", "a": 0.9, "b": 1.0},
        "local": {"decay": 0.01},
        "dtype": "float32",
        "published": False,
    },
    "paper": {
        "rule": {"name": "IOS"},
        "rounds": 50_000,
        "evaluate_every": 500,
        "step": {"name": "inverse-sqrt", "a": 0.9, "b": 1.0},
        "local": {"decay": 0.01},
        "dtype": "float64",
        "published": True,
    },
}
"""`text` is the default; `paper` is what produced the paper's numbers."""

PROFILES["guarded"] = {**PROFILES["text"], "rule": {"name": "Leash"}}
"""Against liars who know the rule, where every worker has several classes (reports/audit, eighth protocol). What that
costs: docs/recommendation.md."""


def profile(name: str | None) -> dict[str, Any]:
    """The defaults under a profile; `text` if none is named.

    >>> profile("paper")["dtype"]
    'float64'
    """
    chosen = "text" if name is None else name
    if chosen not in PROFILES:
        raise UnknownName(f"unknown profile {chosen!r}: {nearest(str(chosen), PROFILES)}")
    return PROFILES[chosen]
