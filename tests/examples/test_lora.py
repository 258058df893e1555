"""examples/lora_among_liars.py in a short version: with the mean, liars undo what is learned; with IOS they do not."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "examples" / "lora_among_liars.py"


def test_adapters_learn_beside_liars() -> None:
    command = [sys.executable, str(SCRIPT), "--base-rounds", "2", "--rounds", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.findall(r"(mean|IOS): perplexity (\S+) before, (\S+) after; 768 numbers per message", done.stdout)
    assert done.returncode == 0 and [rule for rule, *_ in found] == ["mean", "IOS"], done.stderr
    (_, start, averaged), (_, same, agreed) = found
    assert start == same and float(agreed) < float(start) < float(averaged)
