"""The notebooks run from top to bottom, with fewer rounds, and show what they promise."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"
NAMES = sorted(path.name for path in FOLDER.glob("*.ipynb"))


def executed(path: Path, folder: Path, **smaller: int) -> Any:
    """The notebook after its last cell; an exception in a cell is one here. Capital letters get smaller values."""
    book = nbformat.read(path, as_version=4)
    for cell in book.cells:
        for name, value in smaller.items():
            cell.source = re.sub(rf"^{name} = \d+$", f"{name} = {value}", cell.source, flags=re.MULTILINE)
    client = NotebookClient(book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    asyncio.run(client.async_execute())
    return book


def shown(book: Any) -> list[str]:
    """The kinds of output of all cells."""
    return [kind for cell in book.cells for output in cell.get("outputs", ()) for kind in output.get("data", {})]


def test_there_are_two_notebooks_without_outputs() -> None:
    assert NAMES == ["compare.ipynb", "tour.ipynb"]
    for name in NAMES:
        book = nbformat.read(FOLDER / name, as_version=4)
        assert not any(cell.get("outputs") for cell in book.cells), name


def test_the_tour_draws_networks_curves_and_trust(tmp_path: Path) -> None:
    book = executed(FOLDER / "tour.ipynb", tmp_path, ROUNDS=20, SEEDS=2)
    kinds = shown(book)
    assert kinds.count("image/png") == 6
    html = "".join(output["data"]["text/html"] for cell in book.cells for output in cell.get("outputs", ())
                   if "text/html" in output.get("data", {}))  # fmt: skip
    assert "<progress" in html and "100%" in html  # the bars of both runs
    assert 'class="network"' in html and "can tolerate 2 liars" in html


def test_the_comparison_makes_a_table_and_a_figure(tmp_path: Path) -> None:
    book = executed(FOLDER / "compare.ipynb", tmp_path, ROUNDS=20)
    assert "image/png" in shown(book) and "text/markdown" in shown(book)
    text = "".join(output.get("text", "") for cell in book.cells for output in cell.get("outputs", ()))
    assert r"\textbf{" in text and r"\begin{tabular}" in text and "n = " not in text
