"""The arena: rules against attacks on graphs and partitions of the data, as one grid with seeds.

All runs use the profile `paper`, so that a column differs from the paper's only in what its name says.

    tables      our rule in the 25 attack columns of Tables II to VI, at full rounds
    attackers   IPM, dissensus and the adaptive attacker against eight rules on the two non-iid graphs of 12 workers,
                with f exact, one too small and one too large; three seeds for our rule and IOS; 6,000 rounds, because
                a round against the adaptive attacker costs at least five plain ones
    open        any selection of rules, attacks, graphs, partitions, bounds and seeds
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from byzmesh.attacks.base import attacks as attack_registry
from byzmesh.checks import whole
from byzmesh.config.cell import Cell, make_cells
from byzmesh.config.overrides import with_plugins
from byzmesh.config.schema import resolve
from byzmesh.errors import UnknownName, nearest
from byzmesh.networks import Network
from byzmesh.plugins import load_plugins
from byzmesh.rules.base import rules as rule_registry
from byzmesh.studies.paper.cells import ATTACKS, QUICK_EVALUATE_EVERY, TABLES
from byzmesh.studies.readings import labels_of

OURS = "Reprieve"
PROGRAMMES = ("open", "tables", "attackers")
RULES = (OURS, "IOS", "FABA", "CC", "SCC", "TriMean", "CS+", "RTC")
ATTACKERS = ("IPM", "dissensus", "adaptive")
GRAPHS = ("paper/two-castle", "paper/er-12")
BOUNDS = ("exact", "f - 1", "f + 1")
SEEDED = {OURS: 3, "IOS": 3}
"""Rules that run against the attackers with more than one seed."""
ONE_ROUND = {"adaptive": {"name": "adaptive", "horizon": 1}}
"""Attackers of the committed report as they were: the adaptive one did not look ahead."""
ATTACKERS_ROUNDS = 6_000
QUICK_ROUNDS = 1_000


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The runs of an open arena: all combinations."""

    rules: Sequence[str] = (OURS, "IOS", "FABA", "CC", "WeiMean")
    attacks: Sequence[str] = ("sign-flipping", "isolation", "sample-duplicating", "alie", "adaptive")
    graphs: Sequence[str] = ("paper/two-castle",)
    partitions: Sequence[str] = ("one-class",)
    bounds: Sequence[str] = ("exact",)
    seeds: int = 1
    rounds: int = 50_000
    specs: Mapping[str, Any] = field(default_factory=dict)
    """Options of attacks, by name."""
    plugins: Sequence[str] = ()
    """Scripts or modules that define rules and attacks."""


def bouts(selection: Selection, *, quick: bool = False) -> list[Cell]:
    """The cells of a selection; target is graph and partition, variant is the bound f given to rules, empty if exact.

    A rule that ignores f meets each column once: the bound changes nothing for it.

    >>> found = bouts(Selection(rules=("IOS", "CC"), attacks=("alie",), bounds=BOUNDS), quick=True)
    >>> [(cell.labels["rule"], cell.labels["variant"]) for cell in found]
    [('IOS', ''), ('IOS', 'f - 1'), ('IOS', 'f + 1'), ('CC', ''), ('CC', 'f - 1'), ('CC', 'f + 1')]
    >>> found[3].config == found[5].config
    True
    """
    for bound in selection.bounds:
        if bound not in BOUNDS:
            raise UnknownName(f"unknown bound {bound!r}: {nearest(bound, BOUNDS)}")
    whole("seeds", selection.seeds, 1)
    whole("rounds", selection.rounds, 1)
    plugins = load_plugins(selection.plugins)
    rules = [rule_registry.entry(name).name for name in selection.rules]
    known = [attack_registry.entry(name).name for name in selection.attacks]
    told = {graph: _bounds(graph) for graph in selection.graphs}
    return make_cells(
        (
            labels_of(f"{graph.removeprefix('paper/')}, {partition}", rule, attack, "" if bound == "exact" else bound),
            with_plugins(
                _config(
                    rule,
                    selection.specs.get(attack, attack),
                    graph,
                    partition,
                    told[graph][bound],
                    seed,
                    selection.rounds,
                    quick,
                ),
                plugins,
            ),
        )
        for seed in range(selection.seeds)
        for rule in rules
        for graph in selection.graphs
        for partition in selection.partitions
        for attack in known
        for bound in selection.bounds
    )


def programme(name: str, selection: Selection | None = None, *, quick: bool = False) -> list[Cell]:
    """The cells of a programme, or of a selection for `open`.

    >>> len(programme("tables")), len(programme("attackers"))
    (25, 216)
    """
    if name not in PROGRAMMES:
        raise UnknownName(f"unknown programme {name!r}: {nearest(name, PROGRAMMES)}")
    if name == "open":
        return bouts(selection or Selection(), quick=quick)
    if name == "tables":
        return make_cells(
            (
                labels_of(target, OURS, attack),
                _config(OURS, attack, at.network, at.partition, "exact", 0, at.rounds, quick),
            )
            for target, at in TABLES.items()
            for attack in ATTACKS
        )
    found = []
    for rule in RULES:
        chosen = Selection(
            rules=(rule,),
            attacks=ATTACKERS,
            graphs=GRAPHS,
            bounds=BOUNDS,
            seeds=SEEDED.get(rule, 1),
            rounds=ATTACKERS_ROUNDS,
            specs=ONE_ROUND,
        )
        found += bouts(chosen, quick=quick)
    return found


def _bounds(graph: str) -> dict[str, Any]:
    """The bounds f given to rules on a graph, by name."""
    true = Network.from_spec(graph).lying_neighbours
    return {
        "exact": "exact",
        "f - 1": [max(0, int(count) - 1) for count in true],
        "f + 1": [int(count) + 1 for count in true],
    }


def _config(
    rule: str, attack: Any, graph: str, partition: str, f: Any, seed: int, rounds: int, quick: bool
) -> dict[str, Any]:
    short = {"rounds": QUICK_ROUNDS, "evaluate_every": QUICK_EVALUATE_EVERY} if quick else {"rounds": rounds}
    uses_f = rule_registry.build(rule).uses_f
    return resolve(
        {
            "profile": "paper",
            "network": graph,
            "problem": {"name": "softmax", "partition": partition},
            "rule": rule,
            "attack": attack,
            "f": f if uses_f else "exact",
            "seed": seed,
            **short,
        }
    )
