"""The runs behind every table and figure of the paper: one canonical config per cell, under the profile `paper`.

    table-2 ... table-6   the 292 published cells (Tables II to VI)
    figure-1              sign-flipping on ER-12, non-iid: runs of table-6
    figure-4              IOS on Erdos-Renyi graphs with 20 honest workers and 2 to 10 liars, five attacks
    misjudged-f           rules that take f, with f one too small, exact, one too large, and max
    examples              the two worked examples of Section IV on quadratics
    claims                sentences of the paper that its own numbers contradict, where a run can show it
    outside               IOS on two-castle graphs with 20 honest workers, as recorded with the official code

Cells of a table differ only in rule and attack. Figures 2 and 3 are graphs and table-1 is computed, both without runs.
The short variant (`quick`) changes only the number of rounds and how often to evaluate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.checks import whole
from byzmesh.config.cell import Cell, make_cells
from byzmesh.config.schema import resolve
from byzmesh.errors import ConfigError, UnknownName, nearest
from byzmesh.networks import Network
from byzmesh.rules.base import rules as registry
from byzmesh.studies.paper.published import outside
from byzmesh.studies.readings import labels_of

RULES = (
    "WeiMean",
    "CooMed",
    "GeoMed",
    "Krum",
    "TriMean",
    "SimRew",
    "DRSA",
    "CC",
    "SCC",
    "FABA",
    "IOS",
)
ATTACKS = ("gaussian", "sign-flipping", "isolation", "sample-duplicating", "alie")
QUICK_ROUNDS = 5_000
QUICK_EVALUATE_EVERY = 100


@dataclass(frozen=True)
class Table:
    """A table of accuracies: its network, partition, rules and number of rounds."""

    network: str
    partition: str
    rules: tuple[str, ...]
    rounds: int


TABLES = {
    "table-2": Table("paper/two-castle", "iid", ("NoComm", *RULES), 50_000),
    "table-3": Table("paper/two-castle", "one-class", ("NoComm", *RULES), 50_000),
    "table-4": Table("paper/octopus", "one-class", ("CC", "SCC", "FABA", "IOS"), 150_000),
    "table-5": Table("paper/er-12", "iid", ("NoComm", *RULES), 50_000),
    "table-6": Table("paper/er-12", "one-class", ("NoComm", *RULES), 50_000),
}
FIGURE_1_RULES = ("WeiMean", "CooMed", "GeoMed", "Krum", "IOS")
FIGURE_4_LIARS = {2: 25_000, 4: 25_000, 6: 25_000, 7: 25_000, 8: 25_000, 10: 50_000}
"""Number of liars -> rounds."""
MISJUDGED_RULES = ("Krum", "TriMean", "FABA", "IOS")
MISJUDGED_ATTACKS = ("sign-flipping", "isolation", "alie")
TARGETS = (
    *(f"table-{number}" for number in range(1, 7)),
    *(f"figure-{number}" for number in range(1, 5)),
    "misjudged-f",
    "examples",
    "claims",
    "outside",
)


Asked = tuple[dict[str, Any], dict[str, Any]]
"""Labels and config of a cell."""


def cells(target: str, *, quick: bool = False, seeds: int = 1) -> list[Cell]:
    """The cells of a target, in the paper's order, for each of the seeds 0, ..., seeds - 1.

    >>> [len(cells(f"table-{number}")) for number in range(2, 7)]
    [67, 67, 24, 67, 67]
    >>> cells("table-4")[0]
    Cell(labels={'target': 'table-4', 'rule': 'CC', 'attack': 'none', 'variant': ''})
    """
    whole("seeds", seeds, 1)
    if target == "all":
        return [cell for name in TARGETS for cell in cells(name, quick=quick, seeds=seeds)]
    if target not in TARGETS:
        raise UnknownName(f"unknown target {target!r}: {nearest(target, (*TARGETS, 'all'))}")
    makers = {
        "figure-1": _figure_1,
        "figure-4": _figure_4,
        "misjudged-f": _misjudged,
        "examples": _examples,
        "claims": _claims,
        "outside": _outside,
    }
    asked: list[Asked] = []
    for seed in range(seeds):
        if target in TABLES:
            asked += _table(target, TABLES[target].rules, ("none", *ATTACKS), quick, seed)
        elif target in makers:
            asked += makers[target](quick, seed)
    return make_cells(asked)


def choose(
    target: str, *, quick: bool = False, seeds: int = 1, rules: Sequence[str] = (), attacks: Sequence[str] = ()
) -> list[Cell]:
    """The cells of a target, restricted to the named rules and attacks (in any case) if there are any.

    >>> [cell.labels["attack"] for cell in choose("table-4", rules=["ios"], attacks=["none", "ALIE"])]
    ['none', 'alie']
    """
    chosen = cells(target, quick=quick, seeds=seeds)
    if not chosen and (rules or attacks):
        raise ConfigError(f"{target} is not made of runs; leave --rules and --attacks out")
    for kind, asked in (("rule", rules), ("attack", attacks)):
        known = {cell.labels[kind].lower(): cell.labels[kind] for cell in chosen}
        for name in asked:
            if name.lower() not in known:
                raise UnknownName(f"{target} has no {kind} {name!r}: {nearest(name, known.values())}")
        wanted = {name.lower() for name in asked}
        chosen = [cell for cell in chosen if not wanted or cell.labels[kind].lower() in wanted]
    return chosen


def configs(chosen: Iterable[Cell]) -> list[dict[str, Any]]:
    """The different configs of cells: figures share runs with tables.

    >>> len(configs(cells("table-6") + cells("figure-1")))
    67
    """
    return list({cell.key: cell.config for cell in chosen}.values())


def _paper(network: Any, partition: str, rule: Any, attack: Any, rounds: int, quick: bool, **more: Any) -> Any:
    short = {"rounds": QUICK_ROUNDS, "evaluate_every": QUICK_EVALUATE_EVERY} if quick else {"rounds": rounds}
    problem = {"name": "softmax", "partition": partition}
    return resolve(
        {"profile": "paper", "network": network, "problem": problem, "rule": rule, "attack": attack, **short, **more}
    )


def _table(
    target: str, rules: Iterable[str], attacks: Iterable[str], quick: bool, seed: int, name: str | None = None
) -> list[Asked]:
    table = TABLES[target]
    return [
        (
            labels_of(name or target, rule, attack),
            _paper(table.network, table.partition, rule, attack, table.rounds, quick, seed=seed),
        )
        for rule in rules
        for attack in attacks
        if rule != "NoComm" or attack == "none"
    ]


def _figure_1(quick: bool, seed: int) -> list[Asked]:
    return _table("table-6", FIGURE_1_RULES, ("sign-flipping",), quick, seed, "figure-1")


def _figure_4(quick: bool, seed: int) -> list[Asked]:
    return [
        (
            labels_of("figure-4", "IOS", attack, f"{liars} liars"),
            _paper(f"paper/er-20-b{liars}", "one-class", "IOS", attack, rounds, quick, seed=seed),
        )
        for liars, rounds in FIGURE_4_LIARS.items()
        for attack in ATTACKS
    ]


def _misjudged(quick: bool, seed: int) -> list[Asked]:
    made = []
    for target in ("table-3", "table-6", "table-4"):
        table = TABLES[target]
        graph = table.network.removeprefix("paper/")
        made += [
            (
                labels_of("misjudged-f", rule, attack, f"{graph}, {label}"),
                _paper(table.network, table.partition, rule, attack, table.rounds, quick, f=f, seed=seed),
            )
            for rule in MISJUDGED_RULES
            if rule in table.rules
            for attack in MISJUDGED_ATTACKS
            for label, f in misjudged_bounds(table.network, rule).items()
        ]
    return made


def misjudged_bounds(network: str, rule: str) -> dict[str, Any]:
    """f per honest worker, misjudged in four ways, but never above what the rule allows for that many neighbours.

    >>> misjudged_bounds("paper/octopus", "IOS")["f + 1"]    # an arm has one neighbour: f = 0 is all that IOS allows
    [2, 2, 1, 1, 1, 1, 0, 0, 0, 0]
    """
    built = Network.from_spec(network)
    true = built.lying_neighbours
    allowed = np.array([max(0, registry.build(rule).largest_f(int(degree))) for degree in built.layout.degree])
    most = np.minimum(true.max(), allowed)
    return {
        "f - 1": np.maximum(true - 1, 0).tolist(),
        "exact": "exact",
        "f + 1": np.minimum(true + 1, allowed).tolist(),
        "max": "max" if (most == true.max()).all() else most.tolist(),
    }


def _examples(quick: bool, seed: int) -> list[Asked]:
    """Deterministic and fast: `quick` changes nothing, and the seed only names the run."""
    plain = {"local": {"decay": 0.0}, "dtype": "float64", "attack": "none", "evaluate_every": 1, "seed": seed}
    castles = {
        "problem": {"name": "quadratic", "targets": "halves", "curvature": 2.0, "init": "targets"},
        "network": "paper/two-castle-3",
        "step": {"name": "inverse-sqrt", "a": 0.3},
        "rounds": 300,
    }
    # first half of the targets -1 (head), second half 1 (arms): x* = 0, while equal weights settle at -30/54
    octopus = {
        "problem": {"name": "quadratic", "targets": "halves"},
        "step": {"name": "inverse-sqrt", "a": 0.9},
        "rounds": 2_000,
        "rule": "WeiMean",
        "measure": ["gradient"],
    }
    made = [
        (
            labels_of("examples", rule, "none", "disagreement"),
            resolve({**plain, **castles, "rule": {"name": rule, "steps": 80} if rule == "GeoMed" else rule}),
        )
        for rule in ("WeiMean", "TriMean", "FABA", "IOS", "CooMed", "GeoMed", "Krum")
    ]
    made += [
        (
            labels_of("examples", "WeiMean", "none", f"fixed point, {weights} weights"),
            resolve({**plain, **octopus, "network": {"name": "octopus", "head": 6, "weights": weights}}),
        )
        for weights in ("metropolis-hastings", "equal")
    ]
    return made


def _claims(quick: bool, seed: int) -> list[Asked]:
    """The text's definition beside the published one, two-castle graph, non-iid."""
    table = TABLES["table-3"]
    # Krum uses f only in S - f - 2, and every worker here has a lying neighbour: f - 1 gives the text's S - f - 1
    one_less = misjudged_bounds(table.network, "Krum")["f - 1"]
    at_zero = {"name": "softmax", "partition": table.partition, "init": "zero"}
    pairs: tuple[tuple[Any, ...], ...] = (
        ("IOS", "alie", "IOS, as run"),
        ({"name": "FABA", "own": "inside"}, "alie", "FABA, text"),
        ({"name": "FABA", "own": "outside"}, "alie", "FABA, as run"),
        ("WeiMean", {"name": "isolation", "own": False}, "isolation, text"),
        ("WeiMean", "isolation", "isolation, as run"),
        ("WeiMean", {"name": "gaussian", "std": 1.0, "mean": "weighted"}, "gaussian, text"),
        ("WeiMean", "gaussian", "gaussian, as run"),
        ("CC", {"name": "sign-flipping", "own": False, "mean": "weighted"}, "sign-flipping, text"),
        ("CC", "sign-flipping", "sign-flipping, as run"),
        ("IOS", "sign-flipping", "start, text", {"problem": at_zero}),
        ("IOS", "sign-flipping", "start, as run"),
        ("IOS", {"name": "sample-duplicating", "together": False}, "sample-duplicating, text"),
        ("IOS", "sample-duplicating", "sample-duplicating, as run"),
        ("Krum", "alie", "Krum, text", {"f": one_less}),
        ("Krum", "alie", "Krum, as run"),
    )
    made = []
    for rule, attack, variant, *more in pairs:
        options = {"seed": seed, **(more[0] if more else {})}
        config = _paper(table.network, table.partition, rule, attack, table.rounds, quick, **options)
        named = attack if isinstance(attack, str) else attack["name"]
        made.append((labels_of("claims", config["rule"]["name"], named, variant), config))
    return made


def _outside(quick: bool, seed: int) -> list[Asked]:
    return [
        (
            labels_of("outside", "IOS", attack, variant),
            _paper(
                {"name": "two-castle", "k": told.k, "byzantine": list(told.byzantine)},
                "one-class",
                "IOS",
                attack,
                told.rounds,
                quick,
                seed=seed,
            ),
        )
        for (variant, attack), told in outside().items()
    ]
