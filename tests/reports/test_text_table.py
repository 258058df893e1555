"""Tables as text, for terminals, Markdown and LaTeX (golden files: tests/golden.py)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from byzmesh.reports.pivot import pivot, pivot_csv, pivot_grid
from byzmesh.reports.text_table import Grid, GridCell, to_latex, to_markdown
from byzmesh.store import Store, open_store
from tests.golden import check, terminal
from tests.studies.paper.stores import made_up

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    path = tmp_path_factory.mktemp("rendering") / "runs.db"
    made_up(path, rules=("NoComm", "WeiMean", "GeoMed", "Krum", "SimRew", "DRSA", "IOS"))
    with open_store(path, readonly=True) as opened:
        yield opened


def test_sweep_table(store: Store) -> None:
    table = pivot(store, "rule", "attack", last=10)
    check(GOLDEN / "sweep.txt", terminal(pivot_grid(table)))
    check(GOLDEN / "sweep.csv", pivot_csv(table))


def test_special_characters_are_escaped() -> None:
    grid = Grid(name="x", title="50% & more_", corner="a|b", columns=("c",), rows=(("r", (GridCell("<1 ± 2", "5%"),)),))
    assert r"50\% \& more\_" in to_latex(grid)
    assert r"\shortstack[r]{$<$1 $\pm$ 2\\{\scriptsize 5\%}}" in to_latex(grid)
    assert "a\\|b" in to_markdown(grid)
