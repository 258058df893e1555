"""`byzmesh list`."""

from __future__ import annotations

import pytest

from byzmesh.cli.list import Kind
from tests.cli.commands import as_json, run


@pytest.mark.parametrize("kind", Kind)
def test_everything_has_names_and_options(kind: Kind) -> None:
    rows = as_json("list", kind)
    assert len(rows) >= 2 and all(row["name"] and "options" in row for row in rows)
    assert rows[0]["name"].split()[0] in run("list", kind).stdout


def test_weights_and_schedules() -> None:
    weights = {row["name"]: row for row in as_json("list", "weights")}
    assert weights["metropolis-hastings"]["aliases"] == ["mh", "metropolis"]
    assert weights["metropolis-hastings"]["options"] == {}, "the graph is not a user's choice"
    assert {"name": "constant", "aliases": [], "options": {"a": 0.1}}.items() <= as_json("list", "schedules")[0].items()
