"""The published cells are complete and read exactly."""

from __future__ import annotations

from collections import Counter

import pytest

from byzmesh.errors import DataError
from byzmesh.networks import Network
from byzmesh.studies.paper.cells import ATTACKS, RULES, TABLES, cells
from byzmesh.studies.paper.published import CAPTIONS, FILES, ConsensusError, outside, published


def test_all_292_cells_are_there() -> None:
    counts = Counter(table for table, _, _ in published())
    assert counts == {"table-2": 67, "table-3": 67, "table-4": 24, "table-5": 67, "table-6": 67}
    assert len(published()) == 292
    assert set(CAPTIONS) == set(FILES) == set(TABLES)


def test_every_published_cell_has_a_run_and_every_run_a_cell() -> None:
    ours = {
        (cell.labels["target"], cell.labels["rule"], cell.labels["attack"]) for table in TABLES for cell in cells(table)
    }
    assert ours == set(published())


def test_every_cell_from_outside_has_a_run_on_its_graph() -> None:
    found = cells("outside")
    assert len(found) == len(outside()) == 25
    for cell in found:
        told = outside()[cell.labels["variant"], cell.labels["attack"]]
        net = Network.from_spec(cell.config["network"])
        assert (net.n, len(net.honest), net.byzantine.tolist()) == (2 * told.k, 20, list(told.byzantine))
        assert cell.config["rounds"] == told.rounds and cell.config["f"] == "exact"


def test_cells_by_hand() -> None:
    cell = published()["table-2", "WeiMean", "gaussian"]
    assert (cell.accuracy, str(cell.consensus_error)) == (16.09, ">1e-01")
    cell = published()["table-4", "SCC", "sign-flipping"]
    assert (cell.accuracy, str(cell.consensus_error)) == (32.24, "1e-04")
    cell = published()["table-6", "IOS", "alie"]
    assert (cell.accuracy, str(cell.consensus_error)) == (86.61, "2e-06")
    assert published()["table-5", "NoComm", "none"].accuracy == 90.24


def test_texts_survive_the_round_trip() -> None:
    for cell in published().values():
        assert ConsensusError.parse(str(cell.consensus_error)) == cell.consensus_error
        assert 0.0 <= cell.accuracy <= 100.0
    assert {cell.consensus_error.side for cell in published().values()} == {"", "<", ">"}


@pytest.mark.parametrize(
    ("text", "ours", "agrees"),
    [
        ("<1e-07", 9.9e-8, True),
        ("<1e-07", 1.1e-7, False),
        (">1e-01", 0.2, True),
        (">1e-01", 0.05, False),
        ("2e-06", 9.9e-6, True),
        ("2e-06", 1.1e-5, False),
        ("2e-06", 4.1e-7, True),
        ("2e-06", 3.9e-7, False),
        ("2e-06", float("nan"), False),
    ],
)
def test_agreement_of_consensus_errors(text: str, ours: float, agrees: bool) -> None:
    assert ConsensusError.parse(text).agrees(ours) is agrees


def test_damaged_cell_is_named() -> None:
    with pytest.raises(DataError, match="'<<1'"):
        ConsensusError.parse("<<1")


def test_rules_and_attacks_of_the_paper() -> None:
    assert {attack for _, _, attack in published()} == {"none", *ATTACKS}
    assert {rule for _, rule, _ in published()} == {"NoComm", *RULES}
