"""What a forked process finds ready: all that commands and workers import, and the kernels of their small runs."""

import tempfile
from pathlib import Path

import numpy as np

import byzmesh as bm
import byzmesh.cli
import byzmesh.cli._progress
import byzmesh.config.overrides
import byzmesh.sweeps.here
import byzmesh.sweeps.sweep

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "samples.npz")
    features, labels = np.eye(20).repeat(2, axis=0), np.arange(40) % 4
    np.savez(path, train_x=features, train_y=labels, test_x=features, test_y=labels)
    softmax = {"name": "softmax", "dataset": str(path), "batch": 8}
    for rule, attack in (("ios", "gaussian"), ("cc", "alie")):
        bm.simulate(network="paper/two-castle", problem=softmax, rule=rule, attack=attack, rounds=2)
bm.simulate(network={"name": "ring", "n": 5}, problem={"name": "quadratic", "dimension": 2}, rounds=2)
