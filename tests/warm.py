"""What a forked command finds ready: everything that the commands import, and Numba awake."""

import byzmesh as bm
import byzmesh.cli
import byzmesh.cli._progress
import byzmesh.config.overrides
import byzmesh.sweeps.here
import byzmesh.sweeps.sweep

bm.simulate(network={"name": "ring", "n": 5}, problem={"name": "quadratic", "dimension": 2}, rounds=2)
