"""examples/harden_my_script.py in a short version: averaging fails beside a liar, the hardened script learns."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "harden_my_script.py"


@pytest.mark.parametrize("options", [[], ["--peers"]], ids=["process", "peers"])
def test_hardened_script_learns_beside_a_liar(options: list[str]) -> None:
    command = [sys.executable, str(SCRIPT), *options, "--rounds", "30"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.fullmatch(r"averaging (\d+\.\d)%, hardened (\d+\.\d)%\n", done.stdout)
    assert done.returncode == 0 and found, done.stderr
    averaging, hardened = map(float, found.groups())
    assert averaging < 40 and hardened > 60
