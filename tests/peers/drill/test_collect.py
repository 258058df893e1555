"""What a drill makes of the records of its peers."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from byzmesh.peers.drill.drill import Drill
from byzmesh.peers.drill.launch import collect, store_result
from byzmesh.peers.identity import new_keys
from byzmesh.peers.network_file import network_file
from byzmesh.store import open_store
from byzmesh.sweeps.forensics import suspects


def test_every_metric_of_the_peers_is_averaged_and_no_counter_is(tmp_path: Path) -> None:
    for peer, accuracy in enumerate((0.25, 0.75)):
        records: list[dict[str, Any]] = [
            {"round": r, "accuracy": accuracy, "loss": 1.0, "mine": 2.0 * peer, "silent": 3, "suspects": []}
            for r in (0, 10)
        ]
        lines = [json.dumps(record) for record in records]
        (tmp_path / f"peer{peer}.jsonl").write_text("\n".join([*lines, '{"round": 20, "accu']))
    drill = SimpleNamespace(out=tmp_path, honest=[0, 1], status=dict)
    found = collect(cast(Drill, drill))["metrics"]
    assert {name: values.tolist() for name, values in found.items()} == {
        "round": [0.0, 10.0],
        "accuracy": [0.5, 0.5],
        "worst_accuracy": [0.25, 0.25],
        "loss": [1.0, 1.0],
        "mine": [1.0, 1.0],
    }


@pytest.mark.real
def test_a_stored_drill_has_nodes_where_the_peers_have_ids(tmp_path: Path) -> None:
    entries = [
        {"id": 10 * peer, "address": f"a:{peer}", "public_key": new_keys().public, "share": 0} for peer in range(1, 5)
    ]
    spec = {"topology": {"name": "complete", "n": 4}, "rule": "ios", "f": {10: 1, 20: 1, 30: 0, 40: 1}, "shares": 1}
    file = network_file({"peers": entries, "problem": {"name": "quadratic", "dimension": 2}, **spec})
    drill = SimpleNamespace(file=file, byzantine=[40], attack={"name": "isolation"})
    edges = [[40, 10, 9, 10], [20, 10, 1, 10], [99, 10, 9, 10]]  # 99 joined while they trained
    result = {"workers": {10: {"edges": edges}}, "metrics": {"round": np.array([0.0])}, "seconds": 1.0}
    key = store_result(tmp_path / "runs.db", cast(Drill, drill), result, [], 0.0)
    with open_store(tmp_path / "runs.db") as store:
        network = store.get(key).config["network"]
        assert network["byzantine"] == [3] and network["names"] == ["10", "20", "30", "40"]
        assert store.get(key).config["f"] == {"0": 1, "1": 1, "2": 0, "3": 1}
        assert store.edges(key).tolist() == [[1, 0, 1, 10], [3, 0, 9, 10]]
        assert suspects(store, key).recall is not None
