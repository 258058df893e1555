"""Candidates for a better worst case, on development columns: the tables in candidates.md.

    python reports/audit/candidates.py FILE [--seeds 0 1 2] [--rows ROW ...] [--lies LIE ...]

Adds to FILE, a CSV file, the runs that it does not have, one line each; candidates.csv is such a file. The two lies
that are tried on the rule cost most: they are not told to a candidate that already has less than nine tenths of the
best of the references, which meet all lies, in the same column with the same seed.

tracking        y_n <- A(y) + g_n(new) - g_n(old),  x_n <- A(x - step y): two simulations of the same network side by
                side, one of trackers y and one of models x, each with its own rule and its own lies
shrinking r     a worker's step times min(1, r / d_n), d_n how far the rule moved it from what it sent a round before
Reprieve, q     takes back who is no farther from the trusted average than the weighted q-quantile of all neighbours is
bucketing       before other rules, groups of two
momentum        0.9, ten rounds long; other pages have 0.99
batches of 512  instead of 32: less noise for lies to hide in, as by momentum, but without its delay
"""

from __future__ import annotations

import argparse
import csv
import itertools
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import byzmesh as bm
from byzmesh.errors import InfeasibleBound
from byzmesh.rules.cutting import cut_farthest
from byzmesh.rules.feasible import CUTS_FARTHEST
from byzmesh.rules.gram.pool import peaks
from byzmesh.simulation.engine import Simulation

ROUNDS = 400
HEAD = ("column", "row", "lie", "start", "seed", "rounds", "accuracy")
COLUMNS = {
    "two-castle, one class": ("paper/two-castle", "one-class"),
    "ER-12, one class": ("paper/er-12", "one-class"),
    "two-castle, Dirichlet(0.3)": ("paper/two-castle", {"name": "dirichlet", "alpha": 0.3}),
}
LIES: dict[str, tuple[Any, str]] = {
    "nobody lies": ("none", "zero"),
    "sign-flipping": ("sign-flipping", "zero"),
    "ALIE, z = 3": ({"name": "ALIE", "z": 3.0}, "zero"),
    "far ascent": ({"name": "ascent", "length": 1e4}, "normal"),
    "target": ("target", "common"),
    "riding, ascent": ({"name": "threshold-riding", "direction": "ascent"}, "common"),
}
COSTLY = ("target", "riding, ascent")


class Wrapped:
    """A task with a local step of its own."""

    def __init__(self, task: Any) -> None:
        self.task = task

    def __getattr__(self, name: str) -> Any:
        return getattr(self.task, name)

    def step_kernel(self) -> None:
        """No kernel: it would be that of plain gradient steps."""


class Trackers(Wrapped):
    """Trackers y^k = A(y^(k-1)) + g(x^k) - g(x^(k-1)); y^0 = g(x^0)."""

    models: Simulation
    former: Any = 0.0

    def initial(self, kind: str | None = None) -> Any:
        return np.zeros_like(self.task.initial())

    def half_steps(self, trackers: Any, round: int, keep: float, step: float, out: Any, peak: Any, rows: Any) -> None:
        gradients = self.task.gradients(self.models.models, round, rows=rows)
        out[:] = trackers + gradients - self.former
        peak[:], self.former = peaks(out), gradients

    def full_gradient(self, tracker: Any) -> Any:
        """Up for lies: trackers are followed downhill, so against the gradient at the average model."""
        return -self.task.full_gradient(self.models.models.mean(axis=0, dtype=np.float64))


class Followers(Wrapped):
    """Models whose step goes along the trackers that were sent."""

    trackers: Simulation

    def half_steps(self, models: Any, round: int, keep: float, step: float, out: Any, peak: Any, rows: Any) -> None:
        out[:] = keep * models - step * self.trackers.half
        peak[:] = peaks(out)


def tracked(plain: Simulation, *, told: bm.Attack | None = None) -> Simulation:
    """The models of gradient tracking after all rounds; `told` are the lies about trackers, if they are others."""
    up, down = Trackers(plain.task), Followers(plain.task)
    models, trackers = replace(plain, task=down), replace(plain, task=up, attack=told or plain.attack)
    up.models, down.trackers = models, trackers
    for _ in range(plain.rounds):
        if not (trackers.step() and models.step()):
            break
    return models


class Shrinking(Wrapped):
    """Steps times min(1, r / d), d how far the rule moved a worker from the half step that it sent last."""

    def __init__(self, task: Any, r: float) -> None:
        super().__init__(task)
        self.r, self.sent = r, None

    def half_steps(self, models: Any, round: int, keep: float, step: float, out: Any, peak: Any, rows: Any) -> None:
        moved = np.zeros(len(models)) if self.sent is None else np.linalg.norm(models - self.sent, axis=1)
        factor = np.minimum(1.0, self.r / np.maximum(moved, 1e-30))[:, None].astype(models.dtype)
        gradients = self.task.gradients(models, round, rows=rows)
        out[:] = models - factor * ((1.0 - keep) * models + step * gradients)
        peak[:], self.sent = peaks(out), out.copy()


def shrunk(plain: Simulation, *, r: float) -> Simulation:
    """A run with shrinking steps, after all rounds."""
    simulation = replace(plain, task=Shrinking(plain.task, r))
    simulation.run()
    return simulation


def reprieve_by_quantile(q: float = 0.9) -> bm.Rule:
    """Cut f as IOS does; take back who is within the weighted q-quantile of all neighbours' distances from the rest."""

    def coefficients(block: bm.Block) -> Any:
        trusted = cut_farthest(block.inner, block.weight, block.present, block.f, block.room, block.tie, True)
        share = np.where(trusted, block.weight, 0.0)
        share /= share.sum(axis=1, keepdims=True)
        lean = np.einsum("rij,rj->ri", block.inner, share)
        away2 = np.einsum("rii->ri", block.inner) - 2.0 * lean + np.einsum("ri,ri->r", lean, share)[:, None]
        heard = np.where(block.present, block.weight, 0.0)
        heard[:, 0] = 0.0
        order = np.argsort(away2, axis=1, kind="stable")
        below = np.take_along_axis(heard, order, axis=1).cumsum(axis=1)
        last = (below >= q * below[:, -1:] * (1.0 - 1e-12)).argmax(axis=1)
        reach2 = np.take_along_axis(np.take_along_axis(away2, order, axis=1), last[:, None], axis=1)
        chosen = trusted | (block.present & (away2 <= reach2 * (1.0 + block.tie)))
        mixed = np.where(chosen, block.weight, 0.0)
        return mixed / mixed.sum(axis=1, keepdims=True)

    return bm.gram_rule(
        "Reprieve by quantile",
        coefficients,
        feasible=CUTS_FARTHEST,
        uses_weights=True,
        options={"q": q},
        keeps_own=True,
    )


@dataclass(frozen=True, kw_only=True)
class Row:
    """A rule, how workers take their steps with it, and what is changed in the config."""

    rule: Any
    run: Any = None
    more: Mapping[str, Any] = field(default_factory=dict)


LARGE = {"local": {"accumulate": 16}}
MOMENTUM = {
    0.9: ("IOS", "TriMean", "Leash", "Reprieve", "CooMed", "MeaMed", "WeightedTriMean", "GeoMed", "CC"),
    0.8: ("TriMean", "CooMed"),
    0.95: ("TriMean", "CooMed"),
}
REFERENCES = ("Leash", "TriMean", "CooMed", "IOS", "Reprieve", "WeiMean")
ROWS = {
    **{name: Row(rule=name) for name in REFERENCES},
    **{f"{name}, tracking": Row(rule=name, run=tracked) for name in ("IOS", "TriMean", "Leash")},
    **{
        f"{name}, shrinking {r:g}": Row(rule=name, run=partial(shrunk, r=r))
        for name, r in (("IOS", 0.3), ("Leash", 0.3), ("TriMean", 0.3), ("TriMean", 1.0))
    },
    "Reprieve, c = 1": Row(rule={"name": "Reprieve", "c": 1.0}),
    "Reprieve, q = 0.9": Row(rule=reprieve_by_quantile()),
    **{
        f"bucketing before {name}": Row(rule={"name": "bucketing", "inner": name})
        for name in ("IOS", "GeoMed", "Leash", "TriMean", "Reprieve")
    },
    **{
        f"NNM before {name}": Row(rule={"name": "NNM", "inner": name})
        for name in ("CooMed", "TriMean", "IOS", "Reprieve", "Leash")
    },
    **{
        f"{name}, momentum {beta:g}": Row(rule=name, more={"local": {"momentum": "exponential", "beta": beta}})
        for beta, names in MOMENTUM.items()
        for name in names
    },
    **{f"{name}, batches of 512": Row(rule=name, more=LARGE) for name in ("Leash", "TriMean", "CooMed")},
}


def accuracy(column: str, row: str, lie: str, seed: int) -> float:
    """Of the honest workers after all rounds, on average, in percent."""
    (network, partition), (attack, start), told = COLUMNS[column], LIES[lie], ROWS[row]
    simulation = bm.prepare(
        network=network,
        problem={"name": "softmax", "partition": partition, "init": start},
        rule=told.rule,
        attack=attack,
        f="exact",
        rounds=ROUNDS,
        evaluate_every=ROUNDS,
        seed=seed,
        dtype="float32",
        **told.more,
    )
    if told.run is None:
        simulation.run()
    elif told.run is tracked and attack == "target":  # there is no wrong tracker to aim at
        simulation = tracked(simulation, told=bm.attack("sign-flipping"))
    else:
        simulation = told.run(simulation)
    return 100.0 * float(np.mean(simulation.task.evaluate(simulation.models)["accuracy"]))


Runs = dict[tuple[str, str, int], dict[str, float]]
"""(column, row, seed) -> lie -> accuracy."""


def worst(runs: Runs, column: str, row: str, seed: int) -> float:
    """The lowest accuracy under a lie so far."""
    return min((value for lie, value in runs[column, row, seed].items() if lie != "nobody lies"), default=100.0)


def lost(runs: Runs, column: str, row: str, seed: int) -> bool:
    """Whether a candidate has less than nine tenths of the best of the references."""
    best = max((worst(runs, column, name, seed) for name in REFERENCES if runs[column, name, seed]), default=0.0)
    return row not in REFERENCES and worst(runs, column, row, seed) < 0.9 * best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--lies", nargs="+", choices=LIES, default=list(LIES))
    told = parser.parse_args()
    runs: Runs = defaultdict(dict)
    if told.file.exists():
        with told.file.open(encoding="utf-8", newline="") as file:
            for one in csv.DictReader(file):
                runs[one["column"], one["row"], int(one["seed"])][one["lie"]] = float(one["accuracy"])
    with told.file.open("a", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        if not runs:
            lines.writerow(HEAD)
        for row, seed, column, lie in itertools.product(told.rows, told.seeds, COLUMNS, told.lies):
            met = runs[column, row, seed]
            if lie in met or (lie in COSTLY and lost(runs, column, row, seed)):
                continue
            try:
                met[lie] = round(accuracy(column, row, lie, seed), 2)
            except InfeasibleBound as error:
                print(f"{column}, {row}: {error}")
                continue
            lines.writerow([column, row, lie, LIES[lie][1], seed, ROUNDS, met[lie]])
            file.flush()


if __name__ == "__main__":
    main()
