"""Every config in examples/ means something, and the neural one runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from byzmesh.cli import app
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


def test_the_convolutional_network_runs() -> None:
    settings = ["rounds=2", "evaluate_every=1", "problem.test_samples=100"]
    command = ["run", str(EXAMPLES / "fashion-cnn.yaml"), *(word for item in settings for word in ("--set", item))]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0 and "finished" in done.output, done.output
