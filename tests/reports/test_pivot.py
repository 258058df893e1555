"""Sweeps as tables: who is averaged with whom and what is never averaged."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byzmesh.errors import ConfigError, UnknownName
from byzmesh.reports.aggregation import STATISTICS, summarise
from byzmesh.reports.charts import draw_charts, run_chart
from byzmesh.reports.pivot import best_cells, pivot, pivot_csv, pivot_grid
from byzmesh.reports.sweep import sweep_chart, sweep_report
from byzmesh.reports.text_table import to_latex, to_markdown
from byzmesh.store import Store, open_store
from tests.reports.stores import config, fill, put


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "runs.db") as opened:
        fill(opened)
        yield opened


def test_mean_and_spread_over_the_seeds(store: Store) -> None:
    table = pivot(store, last=2)
    cell = table.cells["IOS", "none"]
    assert (cell.n, cell.diverged, cell.total) == (3, 1, 4)
    assert cell.mean == pytest.approx(92.0)
    assert cell.std == pytest.approx(2.0)
    assert table.row_labels == ("IOS", "Krum") and table.column_labels == ("none", "alie")


def test_what_diverged_or_failed_is_shown_and_not_averaged(store: Store) -> None:
    grid = dict(pivot_grid(pivot(store, last=1)).rows)
    assert (grid["IOS"][0].text, grid["IOS"][0].detail) == ("92.00 ± 2.00", "n = 3, 1 diverged")
    assert (grid["IOS"][1].text, grid["IOS"][1].detail) == ("50.00", "n = 1, 1 failed")
    assert [cell.text for cell in grid["Krum"]] == ["diverged", "to run"]
    assert np.isnan(pivot(store).cells["Krum", "none"].mean)


def test_last_evaluations(store: Store) -> None:
    assert pivot(store, last=1).cells["IOS", "alie"].mean == pytest.approx(50.0)
    assert pivot(store, last=3).cells["IOS", "alie"].mean == pytest.approx(50.0), "the start never counts"
    assert pivot(store).cells["IOS", "alie"].mean == pytest.approx(50.0), "rounds 0, 1, 2: the last one"
    assert pivot(store, metric="loss").cells["IOS", "alie"].mean == pytest.approx(1.0)
    assert "Mean of the evaluations in the last tenth of the rounds, at most 10" in pivot_grid(pivot(store)).note
    assert "Mean of the last 3 evaluations" in pivot_grid(pivot(store, last=3)).note
    assert pivot(store, metric="loss", last=2).cells["IOS", "alie"].mean == pytest.approx(1.5)
    with pytest.raises(ConfigError, match="last must be a whole number of at least 1"):
        pivot(store, last=0)
    with pytest.raises(ConfigError, match="no metric 'acuracy': did you mean 'accuracy'"):
        pivot(store, metric="acuracy")


def test_runs_that_differ_in_more_than_the_seed_are_not_mixed(store: Store) -> None:
    put(store, 0.3, step=0.1)
    with pytest.raises(ConfigError, match=r"cell \(IOS, none\).*differ in step.*add step to the rows"):
        pivot(store)
    assert pivot(store, rows="rule,step").row_labels == ("IOS, -", "Krum, -", "IOS, 0.1")
    assert pivot(store, where={"step": 0.1}).cells["IOS", "none"].n == 1


def test_the_most_telling_difference_comes_first(store: Store) -> None:
    put(store, 0.3, rule="Krum", a=0.1)
    with pytest.raises(ConfigError, match=r"differ in rule \(IOS, Krum\), and in a: add rule to the rows"):
        pivot(store, rows="seed", columns="attack")


def test_own_graphs_that_would_be_averaged_are_named_by_their_files(tmp_path: Path) -> None:
    with open_store(tmp_path / "runs.db") as store:
        for name, liar in (("sites", 1), ("labs", 2)):
            network = {"edges": [[0, liar]], "n": 3 + liar, "label": name, "byzantine": [liar]}
            store.finish(store.plan({"rule": {"name": "IOS"}, "network": network}), "finished", {"accuracy": [0.5]})
        with pytest.raises(ConfigError, match=r"differ in network \(labs, sites\).*: add network to the rows"):
            pivot(store, columns="rule")


def test_a_further_statistic_is_in_every_table(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("byzmesh.reports.aggregation.STATISTICS", {**STATISTICS, "worst": min})
    table = pivot(store, last=2)
    header, first, *_ = csv.reader(pivot_csv(table).splitlines())
    assert header[3:7] == ["mean", "std", "worst", "n"] and first[5] == "90"
    for shown in (to_markdown, to_latex):
        assert "n = 3, worst 90.00, 1 diverged" in shown(pivot_grid(table))


def test_unknown_key_names_the_nearest(store: Store) -> None:
    with pytest.raises(UnknownName, match=r"no run has the field 'ruel': did you mean 'rule'"):
        pivot(store, rows="ruel")


def test_empty_store(tmp_path: Path) -> None:
    with open_store(tmp_path / "empty.db") as empty, pytest.raises(ConfigError, match="has no runs"):
        pivot(empty)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6), st.integers(0, 3), st.integers(0, 3))
def test_summary_counts_everything_once(values: list[float], diverged: int, failed: int) -> None:
    class Held:
        def series(self, key: str) -> dict[str, Any]:
            return {"accuracy": np.array([values[int(key)]])}

    class Run:
        def __init__(self, key: str, status: str) -> None:
            self.key, self.status, self.failure, self.failure_kind = key, status, "why", "bug"

    runs = [Run(str(number), "finished") for number in range(len(values))]
    runs += [Run("x", "diverged")] * diverged + [Run("y", "failed")] * failed
    told = summarise(Held(), runs)  # type: ignore[arg-type]
    assert (told.n, told.diverged, told.failed, told.waiting) == (len(values), diverged, failed, 0)
    assert told.total == len(runs)
    assert told.mean == pytest.approx(100.0 * np.mean(values))
    assert told.std == pytest.approx(100.0 * np.std(values, ddof=1) if len(values) > 1 else 0.0)


def test_seeds_of_the_network_are_seeds(tmp_path: Path) -> None:
    def random(seed: int, liars: list[int], **more: Any) -> dict[str, Any]:
        graph = {"name": "erdos-renyi", "n": 9, "p": 0.5, "seed": seed, "byzantine": liars, "weights": "equal"}
        return {"network": graph, **more}

    with open_store(tmp_path / "random.db") as opened:
        for seed in range(3):
            put(opened, 0.5 + 0.1 * seed, seed=seed, **random(seed, [seed]))
        assert pivot(opened, columns="network").cells["IOS", "erdos-renyi"].n == 3
        assert pivot(opened, columns="network.seed").column_labels == ("0", "1", "2")
        put(opened, 0.9, seed=3, **random(3, [1, 2]))
        with pytest.raises(ConfigError, match=r"differ in network\.byzantine"):
            pivot(opened)
    with open_store(tmp_path / "placed.db") as opened:
        for liar in (4, 5):
            put(opened, 0.5, seed=0, **random(0, [liar]))
        with pytest.raises(ConfigError, match=r"differ in network\.byzantine \(\[4\], \[5\]\)"):
            pivot(opened)


def test_graphs_without_a_name(tmp_path: Path) -> None:
    def own(nodes: int, **more: Any) -> dict[str, Any]:
        edges = [[node, node + 1] for node in range(nodes - 1)]
        return {"network": {"edges": edges, "n": nodes, "byzantine": [1], "weights": "equal", **more}}

    with open_store(tmp_path / "own.db") as opened:
        put(opened, 0.5, **own(30))
        put(opened, 0.6, **own(31))
        put(opened, 0.7)
        with pytest.raises(ConfigError, match=r"differ in network \(#\w{8}, #\w{8}, ring\): add network to the rows"):
            pivot(opened)
        columns = pivot(opened, columns="network").column_labels
        assert columns[2] == "ring" and all(len(label) == 9 and label[0] == "#" for label in columns[:2])
    with open_store(tmp_path / "labelled.db") as opened:
        put(opened, 0.5, **own(30, label="line"))
        put(opened, 0.7)
        assert pivot(opened, columns="network").column_labels == ("line", "ring")
        put(opened, 0.6, **own(31, label="line"))
        with pytest.raises(ConfigError, match=r"cell \(IOS, line\) would average runs that differ in network"):
            pivot(opened, columns="network")


def test_csv_has_a_line_per_cell(store: Store) -> None:
    lines = list(csv.DictReader(pivot_csv(pivot(store, last=1)).splitlines()))
    assert len(lines) == 4
    assert lines[0] == {
        "rule.name": "IOS",
        "attack.name": "none",
        "metric": "accuracy",
        "mean": "92",
        "std": "2",
        "n": "3",
        "diverged": "1",
        "failed": "0",
        "waiting": "0",
    }
    assert lines[2]["mean"] == ""


def test_curves_are_means_of_finished_runs(store: Store) -> None:
    chart = sweep_chart(store, pivot(store), "accuracy")
    (curve,) = chart.facets["none"]
    assert curve.name == "IOS"
    assert curve.y == pytest.approx((0.0, 92.0, 92.0))
    assert not chart.logarithmic and run_chart(store, {}, "consensus_error").logarithmic


def test_curves_over_the_bytes_that_were_sent(store: Store, tmp_path: Path) -> None:
    """Two seeds that sent 100 and 300 bytes a round: a point at their mean, and none at zero; a chart of the report."""
    with pytest.raises(ConfigError, match="no curve"):
        draw_charts([sweep_chart(store, pivot(store), "accuracy", "bytes_sent")], tmp_path / "plot.png")
    with open_store(tmp_path / "sent.db") as sent:
        for seed, size in enumerate((100.0, 300.0)):
            series: dict[str, list[float]] = {
                "round": [0, 1, 900],
                "accuracy": [0.1, 0.4, 0.8],
                "bytes_sent": [0.0, size, 900 * size],
            }
            sent.finish(sent.plan(config(seed=seed)), "finished", series, rounds=900)
        chart = sweep_chart(sent, pivot(sent), "accuracy", "bytes_sent")
        (curve,) = chart.facets["none"]
        assert curve.x == (200.0, 180_000.0) and curve.y == pytest.approx((40.0, 80.0))
        assert (chart.x_label, chart.logarithmic_x, chart.title) == (
            "bytes sent per worker",
            True,
            "Accuracy over bytes sent",
        )
        assert sweep_report(sent, pivot(sent)).sections[0].charts[1] == chart
        draw_charts([chart], tmp_path / "plot.png")


def test_figures_are_the_same_file_twice(store: Store, tmp_path: Path) -> None:
    chart = sweep_chart(store, pivot(store), "accuracy")
    for suffix, start in ((".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")):
        one, two = (draw_charts([chart], tmp_path / f"{name}{suffix}").read_bytes() for name in "ab")
        assert one == two and one.startswith(start)
    with pytest.raises(ConfigError, match="suffix must be"):
        draw_charts([chart], tmp_path / "plot.gif")
    with pytest.raises(ConfigError, match="no curve"):
        draw_charts([run_chart(store, {})], tmp_path / "plot.png")


def seeds(store: Store, rule: str, *values: float, **more: Any) -> None:
    """A run for each value."""
    for seed, value in enumerate(values):
        put(store, value, rule=rule, seed=seed, **more)


def test_the_best_of_a_column_is_bold_and_what_noise_hides_too(tmp_path: Path) -> None:
    """Welch's t-test written out: 0.90 ± 0.01 is not distinguishable from 0.91 ± 0.01 with three seeds, 0.80 is."""
    with open_store(tmp_path / "runs.db") as store:
        seeds(store, "IOS", 0.90, 0.91, 0.92)
        seeds(store, "FABA", 0.89, 0.90, 0.91)
        seeds(store, "Krum", 0.79, 0.80, 0.81)
        table = pivot(store)
        assert best_cells(table) == {("IOS", "none"), ("FABA", "none")}
        grid = pivot_grid(table)
        assert [cells[0].best for _, cells in grid.rows] == [True, True, False]
        assert "| IOS | **91.00 ± 1.00** |" in to_markdown(grid) and "| Krum | 80.00 ± 1.00 |" in to_markdown(grid)
        assert r"\textbf{91.00 $\pm$ 1.00}" in to_latex(grid)
        assert "Welch" in grid.note
        smallest = pivot(store, metric="loss")
        assert all(
            smallest.cells[place].mean == min(c.mean for c in smallest.cells.values()) for place in best_cells(smallest)
        )


def test_single_runs_have_one_best_and_ties_share_it(tmp_path: Path) -> None:
    with open_store(tmp_path / "runs.db") as store:
        for rule, value in (("IOS", 0.9), ("FABA", 0.9), ("Krum", 0.8999)):
            seeds(store, rule, value)
        assert best_cells(pivot(store)) == {("IOS", "none"), ("FABA", "none")}
        assert pivot_grid(pivot(store)).note.endswith("Bold: the best of its column.")
    with open_store(tmp_path / "alone.db") as store:
        seeds(store, "IOS", 0.9)
        assert best_cells(pivot(store)) == set(), "one rule is not the best of anything"


def test_equal_numbers_of_seeds_are_said_once(tmp_path: Path) -> None:
    with open_store(tmp_path / "runs.db") as store:
        seeds(store, "IOS", 0.9, 0.8)
        seeds(store, "Krum", 0.5, 0.6)
        grid = pivot_grid(pivot(store))
        assert "standard deviation over 2 seeds" in grid.note and "n = " not in to_latex(grid)
        put(store, 0.7, rule="Krum", seed=2)
        assert dict(pivot_grid(pivot(store)).rows)["Krum"][0].detail == "n = 3"


def test_columns_by_two_fields_have_two_lines_of_headings(tmp_path: Path) -> None:
    with open_store(tmp_path / "runs.db") as store:
        for step in (0.1, 0.2):
            for attack in ("none", "alie"):
                put(store, 0.5, attack=attack, step=step)
        text = to_latex(pivot_grid(pivot(store, columns="step,attack")))
        assert r" & \multicolumn{2}{c}{0.1} & \multicolumn{2}{c}{0.2} \\" in text
        assert r"\cmidrule(lr){2-3} \cmidrule(lr){4-5}" in text
        assert r"rule & none & alie & none & alie \\" in text


def test_bands_and_decades_in_charts_of_stored_runs(tmp_path: Path) -> None:
    with open_store(tmp_path / "runs.db") as store:
        seeds(store, "IOS", 0.9, 0.8)
        drawn = sweep_chart(store, pivot(store), "accuracy").facets["none"][0]
        assert drawn.low[-1] < drawn.y[-1] < drawn.high[-1]
        config = {"rule": {"name": "IOS"}, "attack": {"name": "none"}, "seed": 7}
        key = store.plan(config)
        store.finish(key, "finished", {"round": [0.0, 1.0], "loss": [500.0, 0.5]})
        assert run_chart(store, {"": {"a": [key]}}, "loss").logarithmic
