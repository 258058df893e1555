"""`byzmesh draw --rounds`: rounds of a changing network side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

from byzmesh.errors import ConfigError
from tests.cli.commands import run

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(("name", "rounds", "count"), [("lossy", "0-3", 4), ("random-pull", "0,5,20-21", 4)])
def test_rounds_are_drawn(tmp_path: Path, name: str, rounds: str, count: int) -> None:
    out = tmp_path / "rounds.png"
    told = run("draw", EXAMPLES / f"{name}.yaml", "--rounds", rounds, "--out", out)
    assert f"{count} rounds of" in told.stdout and out.read_bytes()[:4] == b"\x89PNG"


def test_wrong_rounds_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--rounds must be numbers and ranges like 0-9"):
        run("draw", "ring", "--set", "network.n=5", "--rounds", "first", "--out", tmp_path / "a.png")
