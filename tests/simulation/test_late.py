"""Late messages: the ring holds what was sent, and rows that are named are the rows that would be copied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from tests.simulation.small import config, write_data

LATE = {"name": "late", "p": 0.4, "s": 2}
SENDERS: list[dict[str, Any]] = [
    {},
    {"local": {"steps": 2}},
    {"local": {"steps": 3}},
    {"local": {"steps": 2, "momentum": "heavy-ball"}},
    {"rule": {"name": "DRSA", "at": "start"}},
    {"rule": "nocomm"},
    {"process": [{"name": "sleep", "p": 0.4}, LATE]},
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.mark.parametrize("change", SENDERS, ids=str)
def test_the_ring_holds_what_was_sent(data: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    """However many steps a round has and whatever is sent; also after a resume."""
    given = config(data, rounds=9, **{"process": LATE, **change})
    run, sent = bm.prepare(**given), []
    for k in range(9):
        assert run.live is not None
        if k == 5:
            run.save(tmp_path / "run")
            run = bm.prepare(**given)
            run.restore(tmp_path / "run")
        before = run.models.copy()
        assert run.step() and run.live is not None
        sent.append(run.half.copy() if run.rule.sends == "half" else before)
        past = run.live.past
        assert past.count == min(k + 1, 2)
        for age in range(min(k + 1, 3)):
            np.testing.assert_array_equal(past.ring[(k - age) % 3], sent[k - age])
        if past.peak is not None and k != 5:
            np.testing.assert_array_equal(past.peak.reshape(3, -1)[k % 3], np.abs(sent[k]).max(axis=1))


@pytest.mark.parametrize("attack", ["sign-flipping", "ipm", "zero", "gaussian"])
@pytest.mark.parametrize("rule", ["ios", {"name": "cc", "centre": "memory"}, "trimean"], ids=str)
def test_named_rows_are_the_rows_that_would_be_copied(data: Path, attack: str, rule: Any) -> None:
    """On a large, sparse network the ring itself is the messages: same bits, and no copy but beside dense lies."""
    network = {"name": "k-regular", "n": 48, "k": 4, "byzantine": 5}
    given = config(data, network=network, attack=attack, rule=rule, process=LATE, rounds=5, dtype="float32")
    runs = [bm.prepare(**given) for _ in range(2)]
    named, copied = (run.live for run in runs)
    assert named is not None and copied is not None
    assert named.past.named == (rule != "trimean")
    copied.past.named = False
    for k in range(5):
        assert all(run.step() for run in runs)
        np.testing.assert_array_equal(runs[0].models, runs[1].models)
        if k:
            rows = [run._delivery.messages for run in runs if run._delivery is not None]
            assert (rows[0] is named.past.flat) == (rule != "trimean" and attack != "gaussian")
            assert rows[1] is not copied.past.flat


def test_liars_that_try_their_lies_know_that_messages_are_late(data: Path) -> None:
    """Trials by inner products know the models of one round: with old messages the rule itself is asked."""
    with_trials, without = (
        bm.prepare(**config(data, attack="adaptive", process=process)) for process in ("matching", LATE)
    )
    for run in (with_trials, without):
        assert run.step()
    assert with_trials.trials is not None and without.trials is None


@pytest.mark.parametrize("rule", ["ios", "trimean"])
def test_what_is_prepared_is_kept_by_the_number_of_old_messages(data: Path, rule: str) -> None:
    """Also for rules of which no round is one compiled call."""
    run = bm.prepare(**config(data, rule=rule, process={"name": "late", "p": 0.1}, rounds=40))
    exchanges = set()
    for _ in range(40):
        run.step()
        exchanges.add(id(run.exchange))
    assert len(exchanges) == 1 and run.live is not None
    assert 3 < len(run.live.meet(0).prepared) <= 11
