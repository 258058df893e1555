"""Profiles: named sets of options, each of them visible in the resolved config.

`published` selects the published variant of problem, rule and attack where it differs from the text's definition; each
registration says what that is.
"""

from __future__ import annotations

from typing import Any

from byzmesh.errors import UnknownName, nearest

PROFILES: dict[str, dict[str, Any]] = {
    "text": {
        "rounds": 1000,
        "evaluate_every": 100,
        "step": {"name": "inverse-sqrt", "a": 0.9, "b": 1.0},
        "local": {"decay": 0.01},
        "dtype": "float32",
        "published": False,
    },
    "paper": {
        "rounds": 50_000,
        "evaluate_every": 500,
        "step": {"name": "inverse-sqrt", "a": 0.9, "b": 1.0},
        "local": {"decay": 0.01},
        "dtype": "float64",
        "published": True,
    },
}
"""`text` is the default; `paper` is what produced the paper's numbers."""


def profile(name: str | None) -> dict[str, Any]:
    """The defaults under a profile; `text` if none is named.

    >>> profile("paper")["dtype"]
    'float64'
    """
    chosen = "text" if name is None else name
    if chosen not in PROFILES:
        raise UnknownName(f"unknown profile {chosen!r}: {nearest(str(chosen), PROFILES)}")
    return PROFILES[chosen]
