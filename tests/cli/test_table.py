"""`byzmesh table`, `plot` and `report`."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from byzmesh.errors import ConfigError
from byzmesh.store import open_store
from tests.cli.commands import app
from tests.reports.stores import fill

run = CliRunner()


def test_table_plot_and_report(tmp_path: Path) -> None:
    where = ["--store", str(tmp_path / "runs.db")]
    with open_store(tmp_path / "runs.db") as opened:
        fill(opened)
    shown = run.invoke(app, ["table", *where, "--last", "1"])
    assert shown.exit_code == 0 and "92.00 ± 2.00" in shown.output and "diverged" in shown.output
    assert run.invoke(app, ["table", *where, "--format", "markdown"]).output.startswith("**accuracy (%) by rule and")
    assert r"\toprule" in run.invoke(app, ["table", *where, "--format", "latex"]).output
    assert run.invoke(app, ["table", *where, "--format", "csv"]).output.startswith("rule.name,attack.name,metric")
    assert isinstance(run.invoke(app, ["table", *where, "--format", "html"]).exception, ConfigError)
    assert run.invoke(app, ["plot", *where, "--out", str(tmp_path / "plot.png")]).exit_code == 0
    done = run.invoke(
        app,
        ["report", *where, "--rows", "rule", "--columns", "attack", "--last", "1", "--out", str(tmp_path / "r.html")],
    )
    assert done.exit_code == 0
    text = (tmp_path / "r.html").read_text("utf-8")
    assert "92.00 ± 2.00" in text and "it broke" in text and "http://" not in text.split("<script>")[0]
