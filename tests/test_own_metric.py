"""A user's metric in one file appears in runs, stores, tables, charts, reports and peers."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.config.schema import resolve
from byzmesh.errors import ConfigError
from byzmesh.peers.identity import load_keys
from byzmesh.peers.node import Node
from byzmesh.peers.plan import plan_network
from byzmesh.reports.charts import draw_charts
from byzmesh.reports.html import to_html
from byzmesh.reports.pivot import pivot, pivot_grid
from byzmesh.reports.sweep import sweep_chart, sweep_report
from byzmesh.reports.text_table import to_markdown
from byzmesh.store import Store, open_store, this_process
from byzmesh.sweeps.run import compute, store_run
from byzmesh.training.metrics import metrics
from tests.cli.commands import run
from tests.peers.networks import make_network

MODULE = '''
"""A user's file."""
import byzmesh as bm
import numpy as np


@bm.register_metric("near_target", unit="percent", direction="up", scale="log", title="workers near the minimum")
def near_target(at: bm.Evaluation) -> float:
    """Fraction of the honest workers within 0.5 of the common minimum."""
    return float(np.mean(np.abs(at.models).max(axis=1) < 0.5))


@bm.register_metric("own_parts", alone=False)
def own_parts(at: bm.Evaluation) -> dict[str, float]:
    """Two series from one function."""
    return {"own_parts_least": float(at.models.min()), "own_parts_most": float(at.models.max())}
'''
QUADRATIC = {"name": "quadratic", "targets": "halves", "init": "targets"}
BASE: dict[str, Any] = {
    "problem": QUADRATIC,
    "network": {"name": "ring", "n": 6},
    "rounds": 30,
    "evaluate_every": 10,
    "step": 0.1,
}


@pytest.fixture(scope="module", autouse=True)
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    path = tmp_path_factory.mktemp("own") / "my_metrics.py"
    path.write_text(MODULE)
    spec = importlib.util.spec_from_file_location("my_metrics", path)
    assert spec is not None and spec.loader is not None
    with metrics.temporary():
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
        yield


def test_runs_record_the_metric() -> None:
    result = bm.simulate(**BASE, rule="weimean", measure=["near_target", "own_parts"])
    values = result.metrics["near_target"]
    assert values[0] == 0.0 and values[-1] == np.mean(np.abs(result.models).max(axis=1) < 0.5)
    assert f"near_target {values[-1]:.4g}" in repr(result)
    assert {"own_parts_least", "own_parts_most"} <= set(result.metrics)
    assert result.final("near_target") == values[-1]
    assert "near_target" not in bm.simulate(**BASE, rule="weimean").metrics


def test_the_listing_shows_the_metric() -> None:
    (found,) = (item for item in bm.list_metrics() if item.name == "near_target")
    assert (found.unit, found.direction, found.scale) == ("percent", "up", "log")
    assert found.summary == "Fraction of the honest workers within 0.5 of the common minimum."
    assert "near_target" in run("list", "metrics").stdout


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A small sweep, computed in this process."""
    with open_store(tmp_path_factory.mktemp("sweep") / "runs.db") as opened:
        for rule in ("weimean", "ios"):
            for seed in (0, 1):
                config = resolve({**BASE, "rule": rule, "seed": seed, "measure": ["near_target", "own_parts"]})
                key = opened.plan(config)
                opened.claim(key, this_process())
                assert store_run(opened, key, compute(config), this_process())
        yield opened


def test_tables_plots_and_reports_show_the_metric(store: Store, tmp_path: Path) -> None:
    table = pivot(store, metric="near_target")
    assert table.cells["WeiMean", "none"].n == 2
    text = to_markdown(pivot_grid(table))
    assert "near target (%) by rule and attack" in text
    chart = sweep_chart(store, table, "near_target")
    assert chart.logarithmic and chart.y_label == "workers near the minimum (%)"
    assert max(value for curve in chart.facets["none"] for value in curve.y) <= 100.0
    assert draw_charts([chart], tmp_path / "own.svg").stat().st_size > 0
    html = to_html(sweep_report(store, pivot(store, metric="loss")))
    for words in ("Near target", "workers near the minimum (%)", "Own parts least", "Own parts most"):
        assert words in html
    assert "Disagreement" not in html, "recorded unasked, shown when asked for"


def test_the_command_line_shows_the_metric(store: Store, tmp_path: Path) -> None:
    where = ("--store", store.path, "--metric", "near_target")
    assert "near target (%)" in run("table", *where).stdout
    assert "own_parts_least" in run("runs", "compare", *(r.key for r in store.list()[:2]), *where[:2]).stdout
    assert run("plot", *where, "--out", tmp_path / "plot.png").exit_code == 0


def test_peers_record_the_metric(tmp_path: Path) -> None:
    usual = {"edges": [], "rule": "nocomm", "problem": QUADRATIC, "timeouts": {"linger": 0.1}}
    file = make_network(tmp_path, 1, real=True, **usual, rounds=2, measure=["near_target"])
    node = Node(file, 0, load_keys(tmp_path / "peer0.key"), out=tmp_path / "out", metrics_port=0)
    assert node.page is not None
    node._evaluate()
    with urlopen(f"http://127.0.0.1:{node.page.port}/metrics") as page:
        assert "byzmesh_near_target 0.0" in page.read().decode()
    node.run()
    lines = [json.loads(line) for line in (tmp_path / "out" / "peer0.jsonl").read_text().splitlines()]
    assert all(not math.isnan(line["near_target"]) and "loss" in line for line in lines)
    assert json.loads((tmp_path / "out" / "peer0.status.json").read_text())["near_target"] == lines[-1]["near_target"]


def test_peers_refuse_what_one_of_them_cannot_know(tmp_path: Path) -> None:
    file = make_network(tmp_path, 6, topology={"name": "ring", "n": 6})
    keys = {entry.id: entry.public_key for entry in file.peers}
    where = {entry.id: entry.address for entry in file.peers}
    graph = bm.network("ring", n=6)
    planned = plan_network(resolve({**BASE, "measure": ["near_target"]}), graph, where, keys)
    assert planned.measure == ["near_target"]
    for name in ("gradient", "own_parts", "certificate"):
        with pytest.raises(ConfigError, match=f"measure: {name} needs more than a peer's own model and data"):
            plan_network(resolve({**BASE, "measure": [name]}), graph, where, keys)
    assert planned.run == plan_network(resolve(BASE), graph, where, keys).run, "peers need not measure the same"
