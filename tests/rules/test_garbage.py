"""No rule leaves cycles behind: the vectors of a round must not wait for the cyclic collector."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from byzmesh.rules.base import rules
from byzmesh.rules.inbox import make_inbox


@pytest.mark.parametrize("name", [name for name in rules.names() if name not in ("bucketing", "nnm", "generic")])
def test_what_a_round_made_is_freed_at_once(name: str) -> None:
    rule = rules.build(name)
    models = np.random.default_rng(0).normal(size=(9, 50))

    def round() -> None:
        inbox = make_inbox(
            rule,
            models[:1],
            weight=np.full((1, 9), 1 / 9),
            f=np.array([1]),
            receiver=np.array([0]),
            messages=models[1:],
            previous=models[:1],
            loss=lambda candidates: np.zeros(candidates.shape[:2]),
        )
        rule.apply(inbox, rule.init(models[:1]))

    round()
    gc.disable()
    try:
        gc.collect(1)  # what is there is now old, and the collector of the young does not look at it
        round()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect(0)
        assert not [type(left) for left in gc.garbage if type(left).__module__.startswith("byzmesh")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
