"""Scripts of examples/ as processes forked from one that has imported PyTorch: each takes seconds for it by itself."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.processes import STARTED

EXAMPLES = Path(__file__).parents[2] / "examples"
FORK = """
import json, os, runpy, sys
import torch._dynamo  # the first optimizer imports it
import byzmesh as bm, byzmesh.peers
bm.aggregate("ios", torch.zeros(2), torch.zeros(4, 2), f=1)
for words, told in json.loads(sys.argv[1]):
    if os.fork() == 0:
        os.dup2(os.open(told, os.O_WRONLY | os.O_CREAT), 1)
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")
        sys.exit()
failed = 0
while True:
    try:
        failed |= os.wait()[1]
    except ChildProcessError:
        sys.exit(failed != 0)
"""


def run_together(folder: Path, *calls: Sequence[object]) -> list[str]:
    """What scripts print that are called at once, each with its arguments; none may fail."""
    told = [folder / f"told{number}" for number in range(len(calls))]
    words = [[str(EXAMPLES / str(name)), *map(str, arguments)] for name, *arguments in calls]
    process = subprocess.Popen(
        [sys.executable, "-c", FORK, json.dumps([*zip(words, map(str, told))])],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    STARTED.append(process)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    return [path.read_text() for path in told]
