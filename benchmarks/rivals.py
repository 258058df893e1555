"""Our rules beside those of ByzFL and ByzPy, and beside the paper's official code, in one run on one thread.

    pip install --no-deps byzfl byzpy             # both need torch; neither is needed by byzmesh
    python benchmarks/rivals.py
    python benchmarks/rivals.py --official PATH   # also rounds of a checkout of the paper's code (its folder ByrdLab)

A row is one rule on n vectors of D numbers in float32. Turns alternate, and the best of each counts; times are
processor time. The others get NumPy arrays and tensors, and their faster answer counts (ByzPy's tensors are a list of
rows). They differ in what they compute: GeoMed is the minimiser here, 3 steps towards it in ByzFL and up to 256 in
ByzPy; CC makes 10 iterations everywhere. Here the first vector is the receiver's own, which TriMean does not trim. What
is not installed is left out.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import torch

import byzmesh as bm
from byzmesh.compiled import limit_threads

Call = Callable[[], Any]

CASES: list[tuple[str, int, int, int]] = [
    ("TriMean", 64, 65_536, 12),
    ("CooMed", 64, 65_536, 12),
    ("MeaMed", 64, 65_536, 12),
    ("CC", 64, 65_536, 12),
    ("GeoMed", 64, 65_536, 12),
    ("NNA", 64, 65_536, 12),
    ("MultiKrum", 80, 65_536, 16),
    ("Krum", 11, 1_000_000, 2),
    ("GeoMed", 11, 1_000_000, 2),
    ("NNA", 11, 1_000_000, 2),
    ("NNM", 196, 4_096, 40),
    *((rule, 11, 7_850, 2) for rule in ("TriMean", "CooMed", "MeaMed", "CC", "GeoMed", "Krum", "MultiKrum", "NNA")),
    ("IOS", 11, 7_850, 2),
    ("MDA", 20, 2_048, 7),
    ("MDA", 30, 2_048, 10),
]
"""Rule, n, D and f."""


def optional(module: str) -> Any:
    """The module, or None. ByzFL imports torchvision and more for what is not used here: stubs stand for them."""
    while True:
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as missing:
            package = str(missing.name)
            if package.split(".")[0] == module.split(".")[0] or package in sys.modules:
                return None
            sys.modules[package] = MagicMock(__path__=[])


def byzfl(rule: str, f: int, count: int) -> Callable[[Any], Any] | None:
    """ByzFL's form of a rule: vectors -> vector."""
    found = optional("byzfl")
    if found is None:
        return None
    made: dict[str, Callable[[], Any]] = {
        "TriMean": lambda: found.TrMean(f),
        "CooMed": lambda: found.Median(),
        "MeaMed": lambda: found.Meamed(f),
        "CC": lambda: found.CenteredClipping(L=10, tau=1.0),
        "GeoMed": lambda: found.GeometricMedian(),
        "Krum": lambda: found.Krum(f),
        "MultiKrum": lambda: found.MultiKrum(f),
        "NNA": lambda: found.MoNNA(f),
        "NNM": lambda: _then(found.NNM(f), found.TrMean(f)),
    }
    return made[rule]() if rule in made else None


def _then(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda vectors: second(first(vectors))


def byzpy(rule: str, f: int, count: int) -> Callable[[Any], Any] | None:
    """ByzPy's form of a rule: vectors -> vector."""
    if optional("byzpy") is None:
        return None
    coordinates, distances = map(optional, ("byzpy.aggregators.coordinate_wise", "byzpy.aggregators.geometric_wise"))
    norms, before = map(optional, ("byzpy.aggregators.norm_wise", "byzpy.pre_aggregators"))
    made: dict[str, Callable[[], Any]] = {
        "TriMean": lambda: coordinates.CoordinateWiseTrimmedMean(f=f).aggregate,
        "CooMed": lambda: coordinates.CoordinateWiseMedian().aggregate,
        "MeaMed": lambda: coordinates.MeanOfMedians(f=f).aggregate,
        "CC": lambda: norms.CenteredClipping(c_tau=1.0, M=10).aggregate,
        "GeoMed": lambda: distances.GeometricMedian().aggregate,
        "Krum": lambda: distances.Krum(f=f).aggregate,
        "MultiKrum": lambda: distances.MultiKrum(f=f, q=count - f).aggregate,
        "NNA": lambda: distances.MoNNA(f=f).aggregate,
        **({"MDA": lambda: distances.MinimumDiameterAveraging(f=f).aggregate} if count <= 20 else {}),  # it tries all
        "NNM": lambda: _then(
            before.NearestNeighborMixing(f=f).pre_aggregate, coordinates.CoordinateWiseTrimmedMean(f=f).aggregate
        ),
    }
    return made[rule]() if rule in made else None


def ours(rule: str, f: int) -> bm.Rule:
    """The same rule here."""
    options: dict[str, dict[str, Any]] = {"CC": {"tau": 1.0, "iterations": 10}, "NNM": {"inner": "trimean"}}
    return bm.rule(rule, **options.get(rule, {}))


def calls(rule: str, count: int, columns: int, f: int) -> dict[str, list[Call]]:
    """Library -> ways to compute the rule on the same vectors."""
    vectors = np.random.default_rng(0).normal(size=(count, columns)).astype(np.float32)
    tensors, chosen = torch.from_numpy(vectors), ours(rule, f)
    rows, lists = list(vectors), list(tensors)
    found: dict[str, list[Call]] = {"byzmesh": [lambda: bm.aggregate(chosen, vectors[0], vectors[1:], f=f)]}
    theirs = byzfl(rule, f, count)
    if theirs is not None:
        found["ByzFL"] = [lambda: theirs(vectors), lambda: theirs(tensors)]
    others = byzpy(rule, f, count)
    if others is not None:
        found["ByzPy"] = [lambda: others(rows), lambda: others(lists)]
    return found


def best(ways: dict[str, list[Call]], repeats: int) -> dict[str, float]:
    """Milliseconds of processor time per call of each library's fastest way, in alternating turns."""
    turns = {(name, place): call for name, tried in ways.items() for place, call in enumerate(tried)}
    found = dict.fromkeys(turns, np.inf)
    often: dict[tuple[str, int], int] = {}
    for key, call in list(turns.items()):
        try:
            call()
            began = time.perf_counter()
            call()
            often[key] = max(1, int(0.01 / max(time.perf_counter() - began, 1e-6)))
        except Exception as error:  # another library may refuse this size or this type
            print(f"  {key[0]}: {type(error).__name__}: {error}", file=sys.stderr)
            del turns[key]
    for _ in range(repeats):
        for key, call in turns.items():
            began = time.process_time()
            for _ in range(often[key]):
                call()
            found[key] = min(found[key], 1e3 * (time.process_time() - began) / often[key])
    return {name: min(found[key] for key in found if key[0] == name) for name in ways}


def compare(repeats: int) -> None:
    """The table of aggregations."""
    print("| rule | n x D | f | ByzFL | ByzPy | byzmesh | ratio to the faster |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for rule, count, columns, f in CASES:
        took = best(calls(rule, count, columns, f), repeats)
        others = [took[name] for name in ("ByzFL", "ByzPy") if np.isfinite(took.get(name, np.inf))]
        shown = [f"{took[name]:.3g}" if name in took else "" for name in ("ByzFL", "ByzPy", "byzmesh")]
        ratio = f"{min(others) / took['byzmesh']:.1f}" if others else ""
        print(f"| {rule} | {count} x {columns:,} | {f} | {' | '.join(shown)} | {ratio} |", flush=True)


OFFICIAL = {
    "IOS": "D_ios",
    "WeiMean": "D_meanW",
    "FABA": "D_faba",
    "CC": "D_centered_clipping",
    "SCC": "D_self_centered_clipping",
    "CooMed": "D_median",
    "TriMean": "D_trimmed_mean",
    "Krum": "D_Krum",
    "GeoMed": "D_geometric_median",
}
_RADIUS: dict[str, dict[str, Any]] = {
    "CC": {"threshold": 0.3},
    "SCC": {"threshold_selection": "parameter", "threshold": 0.3},
}


def official_rounds(folder: Path) -> Callable[[str, int], None]:
    """(rule, rounds) -> None: rounds of the official code on its two-castle graph, one class per worker."""
    sys.path.insert(0, str(folder))
    os.chdir(folder)  # it reads its data set from there
    names = "aggregation", "attack", "graph", "decentralizedAlgorithm", "tasks.softmaxRegression"
    library = "library.dataset", "library.partition", "library.learnRateController"
    parts = {name: importlib.import_module(f"ByrdLab.{name}") for name in (*names, *library)}
    graph = parts["graph"].TwoCastle(k=6, byzantine_size=2, seed=40)
    task = parts["tasks.softmaxRegression"].softmaxRegressionTask(parts["library.dataset"].mnist())

    def run(rule: str, rounds: int) -> None:
        aggregation = getattr(parts["aggregation"], OFFICIAL[rule])(graph, **_RADIUS.get(rule, {}))
        settings = {**task.super_params, "rounds": 1, "display_interval": rounds}
        parts["decentralizedAlgorithm"].DSGD(
            aggregation=aggregation,
            graph=graph,
            attack=parts["attack"].D_sign_flipping(graph),
            weight_decay=task.weight_decay,
            dataset=task.dataset,
            model=task.model,
            loss_fn=task.loss_fn,
            initialize_fn=task.initialize_fn,
            get_train_iter=task.get_train_iter,
            get_val_iter=task.get_val_iter,
            partition_cls=parts["library.partition"].LabelSeperation,
            lr_ctrl=parts["library.learnRateController"].one_over_sqrt_k_lr(a=1, b=1),
            fix_seed=True,
            seed=100,
            **settings,
        ).run()

    return run


def compare_rounds(folder: Path, repeats: int) -> None:
    """The table of rounds: 300 rounds less 100, so that preparation and evaluation do not count."""
    simulations = {
        (rule, dtype): bm.prepare(
            problem={"name": "softmax", "partition": "one-class"},
            network="paper/two-castle",
            rule=rule,
            attack="sign-flipping",
            dtype=dtype,
            rounds=1 << 40,
            profile="paper",
        )
        for rule in OFFICIAL
        for dtype in ("float32", "float64")
    }
    official = official_rounds(folder)
    print("| rule | official (float64) | byzmesh, float32 | float64 | ratio, float32 / float64 |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for rule in OFFICIAL:
        theirs, mine = np.inf, {"float32": np.inf, "float64": np.inf}
        for _ in range(repeats):
            took = []
            for rounds in (100, 300):
                began = time.process_time()
                official(rule, rounds)
                took.append(time.process_time() - began)
            theirs = min(theirs, 1e3 * (took[1] - took[0]) / 200)
            for dtype in mine:
                began = time.process_time()
                for _ in range(200):
                    simulations[rule, dtype].step()
                mine[dtype] = min(mine[dtype], 1e3 * (time.process_time() - began) / 200)
        single, double = mine["float32"], mine["float64"]
        print(
            f"| {rule} | {theirs:.1f} | {single:.2f} | {double:.2f} | {theirs / single:.0f} / {theirs / double:.0f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7, help="turns of each library")
    parser.add_argument("--official", type=Path, metavar="PATH", help="a checkout of the paper's code")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with limit_threads(1):
        compare(options.repeats)
        if options.official is not None:
            print()
            compare_rounds(options.official.resolve(), min(options.repeats, 3))
    print(f"load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
