"""Liars that pretend to be asleep: silent to everybody at once, as often as they should, otherwise the inner attack."""

from __future__ import annotations

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.errors import ConfigError

NET = bm.network("complete", n=8, byzantine=[5, 6, 7])


def test_a_liar_is_silent_to_all_or_to_none() -> None:
    models = np.random.default_rng(0).normal(size=(5, 3))
    inner = bm.forge("alie", NET, models)
    spoke = np.zeros(3)
    for number in range(400):
        forged = bm.forge("feigned-sleep", NET, models, round=bm.Round(number=number, seed=2), inner="alie", p=0.3)
        for place, liar in enumerate((5, 6, 7)):
            told = sorted(forged.victim[forged.liar == liar].tolist())
            assert told in ([], [0, 1, 2, 3, 4])
            spoke[place] += bool(told)
            if told:
                np.testing.assert_array_equal(forged[liar, 2], inner[liar, 2])
    assert (np.abs(spoke / 400 - 0.7) < 0.12).all()
    assert len(bm.forge("feigned-sleep", NET, models, p=1.0)) == 0


def test_silence_makes_a_rule_cut_honest_messages() -> None:
    """f counts the liars that are due; those that do not speak leave the cut to honest ones."""
    shared = {"problem": {"name": "quadratic", "targets": "normal"}, "network": NET, "rule": "trimean", "f": 3}
    for p, silent in ((0.0, False), (1.0, True)):
        run = bm.prepare(attack={"name": "feigned-sleep", "p": p}, rounds=3, **shared)  # type: ignore[arg-type]
        run.step()
        assert (run.exchange.slots(run._forge(bm.Round(number=1)))[1].sum(axis=1) == (5 if silent else 8)).all()


def test_attacks_on_data_cannot_be_wrapped() -> None:
    with pytest.raises(ConfigError, match="label-flipping acts on data"):
        bm.attack("feigned-sleep", inner="label-flipping")
