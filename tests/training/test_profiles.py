"""Profiles fill in what a config leaves out, and nothing else."""

from __future__ import annotations

from typing import Any

import byzmesh as bm
from byzmesh.config.schema import resolve
from byzmesh.rules.base import rules


def test_guarded_is_the_default_but_for_the_rule() -> None:
    usual, guarded = (
        resolve({"network": "paper/two-castle"}),
        resolve({"network": "paper/two-castle", "profile": "guarded"}),
    )
    assert {key for key in usual if usual[key] != guarded[key]} == {"rule"}
    assert guarded["rule"]["name"] == "Leash"


def test_a_config_without_a_rule_gets_the_recommended_one() -> None:
    recommended = rules.canonical(bm.RECOMMENDED_RULE)
    assert resolve({"network": "paper/two-castle"})["rule"] == recommended
    known: dict[str, Any] = {
        "problem": {"name": "quadratic", "dimension": 2},
        "network": {"name": "ring", "n": 5},
        "rounds": 1,
    }
    assert bm.simulate(**known).config["rule"] == recommended


def test_what_a_config_says_goes_before_its_profile() -> None:
    written = {"network": "paper/two-castle", "profile": "guarded", "rule": "ios", "local": {"momentum": "exponential"}}
    found = resolve(written)
    assert (found["rule"]["name"], found["local"]["momentum"], found["local"]["decay"]) == ("IOS", "exponential", 0.01)
