"""More rounds of a stored run: continue from its last state where that gives the same bits.

A round depends on its number, not on the total: step sizes, batches and draws do not depend on the length of a run. A
rule that does (BALANCE shrinks its radius over the run) declares it and is computed from round 0; so is every part that
is not built in, because nobody knows whether it does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from byzmesh.attacks.base import attacks
from byzmesh.naming import without_names
from byzmesh.registry import Registry
from byzmesh.rules.base import rules
from byzmesh.store import RunRecord, Store
from byzmesh.sweeps.models import state_file


def state_to_go_on_from(store: Store, run: RunRecord, note: Callable[[str], None]) -> Path | None:
    """The state of the longest finished run that differs only by fewer rounds; `note` is called with what is done."""
    config = run.config
    if run.again or not {"rounds", "seed", "rule", "attack"} <= set(config):
        return None
    like = {"seed": config["seed"], "rule.name": config["rule"]["name"], "attack.name": config["attack"]["name"]}
    shorter = [
        other
        for other in store.list(like, "finished")
        if other.config["rounds"] < config["rounds"]
        and other.code_json == run.code_json
        and without_names({**other.config, "rounds": config["rounds"]}) == without_names(config)
    ]
    if not shorter:
        return None
    best = max(shorter, key=lambda other: (state_file(store.path, other.key).exists(), other.config["rounds"]))
    there = f"{best.config['rounds']} of {config['rounds']} rounds are stored"
    reason = length_matters(config)
    state = state_file(store.path, best.key)
    if reason is None and not state.exists():
        reason = "their last state was not kept (--keep-models final keeps it)"
    if reason is not None:
        note(f"{there}, but {reason}: the run starts at round 0")
        return None
    note(f"{there}: the run continues from there")
    return state


def length_matters(config: Mapping[str, Any]) -> str | None:
    """Why the first rounds of a config might differ from those of a shorter run; None if they do not.

    >>> length_matters({"rule": {"name": "BALANCE"}, "attack": {"name": "none"}})
    'rule BALANCE depends on the number of rounds'
    >>> length_matters({"rule": {"name": "IOS"}, "attack": {"name": "ALIE"}})
    """
    inner = config["rule"].get("inner")
    parts: list[tuple[Registry[Any], Any]] = [(rules, config["rule"]), (attacks, config["attack"])]
    for registry, spec in [*parts, *([(rules, inner)] if inner else [])]:
        entry = registry.entry_of(spec)
        module = entry.factory.__module__
        if not module.startswith("byzmesh.") or module.endswith(".plain"):
            return f"{registry.kind} {entry.name} is not built in and may depend on the number of rounds"
        if getattr(registry.build(spec), "uses_length", False):
            return f"{registry.kind} {entry.name} depends on the number of rounds"
    return None
