"""What a drill makes of the records of its peers."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from byzmesh.peers.drill.drill import Drill
from byzmesh.peers.drill.launch import collect


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
