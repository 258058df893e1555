"""The report on networks that change: means, intervals, tables and figures from rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from byzmesh.config.grid import read_grid
from byzmesh.studies.processes import draw_loss, draw_monna, draw_pull, interval, kilobytes, report, table

PLANS = Path(__file__).parents[2] / "reports" / "processes"


def rows(**values: list[str]) -> list[dict[str, object]]:
    usual = {"case": ["none"], "network": ["ring"], "split": ["iid"], "rule": ["IOS"], "attack": ["zero"], **values}
    lines: list[dict[str, object]] = [{}]
    for key, options in usual.items():
        lines = [{**line, key: option} for line in lines for option in options]
    return [{**line, "seed": seed, "accuracy": 80.0 + seed, "kilobytes": 9.0} for line in lines for seed in range(5)]


def test_the_interval_is_students() -> None:
    mean, half = interval([{"accuracy": value} for value in (1.0, 2.0, 3.0, 4.0, 5.0)])
    assert mean == 3.0 and half == pytest.approx(2.776 * np.std([1, 2, 3, 4, 5], ddof=1) / np.sqrt(5), rel=1e-3)


def test_a_table_has_a_line_per_case() -> None:
    text = table(rows(case=["a", "b"], attack=["x", "y"]), "case", "attack").splitlines()
    assert text[0] == "| case | x | y |" and text[2] == "| a | 82.0 ± 2.0 | 82.0 ± 2.0 |" and len(text) == 4


def test_every_study_has_a_figure(tmp_path: Path) -> None:
    pulls = ["pull 3", "pull 5", "pull 8", "ER-20", "complete"]
    draw_pull(rows(case=pulls, rule=["IOS", "NNA"]), tmp_path / "pull.png")
    draw_loss(rows(case=["none", "loss 10", "sleep 50"]), tmp_path / "loss.png")
    draw_monna(rows(case=["random", "first"], split=["dirichlet 0.5", "dirichlet 5"]), tmp_path / "monna.png")
    assert all((tmp_path / f"{name}.png").stat().st_size > 1000 for name in ("pull", "loss", "monna"))


def test_a_study_without_its_store_keeps_its_rows(tmp_path: Path) -> None:
    for name in ("pull.yaml", "loss.yaml", "monna.yaml", "runs.csv", "tables.md"):
        (tmp_path / name).write_bytes((PLANS / name).read_bytes())
    report(tmp_path, tmp_path / "nowhere")
    for name in ("runs.csv", "tables.md"):
        assert (tmp_path / name).read_bytes() == (PLANS / name).read_bytes()


def test_bytes_follow_from_the_process() -> None:
    configs = {cell.labels["case"]: cell.config for cell in read_grid(PLANS / "pull.yaml")}
    assert kilobytes(configs["pull 3"], 5) == pytest.approx(3 * 31.4)
    assert kilobytes(configs["complete"], 5) == pytest.approx(23 * 31.4)
