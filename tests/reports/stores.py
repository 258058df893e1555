"""Stores with made-up runs, so that tables can be tested without a single round of training."""

from __future__ import annotations

from typing import Any

from byzmesh.store import Store


def config(rule: str = "IOS", attack: str = "none", seed: int = 0, **more: Any) -> dict[str, Any]:
    ring = {"name": "ring", "n": 5, "byzantine": [1], "weights": "equal"}
    return {"rule": {"name": rule}, "attack": {"name": attack}, "seed": seed, "network": ring, **more}


def put(store: Store, value: float, status: str = "finished", **fields: Any) -> str:
    key = store.plan(config(**fields))
    series: dict[str, list[float]] = {"round": [0, 1, 2], "accuracy": [0.0, value, value], "loss": [3.0, 2.0, 1.0]}
    if status == "failed":
        store.fail(key, "bug", "it broke")
    elif status != "planned":
        store.finish(key, status, series, rounds=2)
    return key


def fill(opened: Store) -> None:
    """Runs of two rules under two attacks: three seeds finished in one cell, and one of each kind of trouble."""
    for seed, value in enumerate((0.90, 0.92, 0.94)):
        put(opened, value, seed=seed)
    put(opened, 0.10, "diverged", seed=3)
    put(opened, 0.50, attack="alie")
    put(opened, 0.50, "failed", attack="alie", seed=1)
    put(opened, 0.50, "diverged", rule="Krum")
    put(opened, 0.50, "planned", rule="Krum", attack="alie")
