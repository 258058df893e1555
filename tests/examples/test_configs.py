"""Every config in examples/ means something; tests/cli/test_run.py runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from byzmesh.config.grid import read_grid
from byzmesh.config.overrides import load_config

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(path.name for path in EXAMPLES.glob("*.yaml"))


@pytest.mark.parametrize("name", [name for name in FILES if not name.startswith("grid")])
def test_a_config_is_complete(name: str) -> None:
    assert load_config(EXAMPLES / name)["rounds"] > 0


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("grid")])
def test_a_grid_has_points(name: str) -> None:
    assert len(read_grid(EXAMPLES / name)) > 1
