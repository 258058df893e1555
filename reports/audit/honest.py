"""Where the evaluation columns end if nobody lies, and alone: honest.csv, of which README.md has two columns.

    python reports/audit/honest.py > reports/audit/honest.csv

IOS if nobody lies, and NoComm, with which workers hear nobody, so that no lie can harm them; 400 rounds, every start,
the seeds of the searches' last stage.
"""

from __future__ import annotations

import csv
import sys
from itertools import product
from pathlib import Path

import numpy as np
from frontier import COLUMNS

import byzmesh as bm
from byzmesh.config.overrides import read_config
from byzmesh.studies.audit.audit import FRESH, SEEDS

HERE = Path(__file__).parent
ROUNDS = 400

if __name__ == "__main__":
    lines = csv.writer(sys.stdout, lineterminator="\n")
    lines.writerow(("column", "rule", "start", "seed", "accuracy"))
    for column, rule in product(COLUMNS, ("IOS", "NoComm")):
        written = read_config(HERE / f"{column}.yaml")
        for start, seed in product(("zero", "common", "normal"), range(FRESH, FRESH + SEEDS)):
            changed = {"rule": rule, "attack": "none", "seed": seed, "rounds": ROUNDS, "evaluate_every": ROUNDS}
            run = bm.prepare(**{**written, **changed, "problem": {**written["problem"], "init": start}})
            run.run()
            accuracy = 100.0 * float(np.mean(run.task.evaluate(run.models)["accuracy"]))
            lines.writerow((column, rule, start, seed, f"{accuracy:.2f}"))
            sys.stdout.flush()
