"""The reproduction of the paper as one report: a section per target, each with its tables, curves and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.networks import Network, network
from byzmesh.reports.charts import Chart, Curve, run_chart
from byzmesh.reports.html import Report, Section
from byzmesh.reports.provenance import describe
from byzmesh.reports.trust import Heatmap, heatmap, picture
from byzmesh.store import Store
from byzmesh.studies.paper import table1_grid, tables
from byzmesh.studies.paper.agreement import agreement_grid, compare
from byzmesh.studies.paper.grid_cells import neutral
from byzmesh.studies.paper.published import FILES
from byzmesh.studies.paper.text import SECTIONS, intro
from byzmesh.studies.readings import Reading


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """The contents of a reproduction.

    readings  of all targets' cells, see `results.collect`
    table_1   records of `byzmesh.studies.paper.table1.table_1`, empty unless that target was asked for
    quick     whether it is the short variant, whose numbers do not match the published ones
    """

    store: Store
    targets: Sequence[str]
    readings: Sequence[Reading]
    table_1: Sequence[Any] = ()
    quick: bool = False

    def of(self, target: str) -> list[Reading]:
        """The readings of one target."""
        return [reading for reading in self.readings if reading.target == target]


def sections(shown: Reproduction) -> dict[str, Section]:
    """The section of each target, in the order of the targets."""
    makers: dict[str, Callable[[Reproduction], Mapping[str, Any]]] = {
        "table-1": _table_1,
        "figure-1": _figure_1,
        "figure-2": lambda shown: {"pictures": _pictures("paper/two-castle-3")},
        "figure-3": lambda shown: {"pictures": _pictures("paper/two-castle", "paper/octopus")},
        "figure-4": _figure_4,
        "misjudged-f": _misjudged,
        "examples": _examples,
        "claims": lambda shown: {"grids": (tables.claims_grid(shown.of("claims")),)},
        "outside": lambda shown: {"grids": tables.outside_grids(shown.of("outside"))},
    }
    sections = {}
    for target in shown.targets:
        parts = _table(shown, target) if target in FILES else makers[target](shown)
        title, *text = SECTIONS[target]
        if shown.quick:
            parts = {**parts, "grids": tuple(map(neutral, parts.get("grids", ())))}
        sections[target] = Section(name=target, title=title, text=tuple(text), **parts)
    return sections


def _table_1(shown: Reproduction) -> Mapping[str, Any]:
    return {"grids": (table1_grid.table_1_grid(shown.table_1), table1_grid.table_1_reasons(shown.table_1))}


def _table(shown: Reproduction, target: str) -> Mapping[str, Any]:
    readings = shown.of(target)
    groups = _groups(readings, lambda reading: (reading.attack, reading.rule))
    return {
        "grids": (tables.accuracy_grid(target, readings), tables.error_grid(target, readings)),
        "charts": (
            run_chart(shown.store, groups, "accuracy", "Accuracy"),
            run_chart(shown.store, groups, "consensus_error", "Consensus error"),
        ),
        "heatmaps": _trust(shown, readings),
        "pictures": _networks(shown, readings),
    }


def _trust(shown: Reproduction, readings: Sequence[Reading]) -> dict[str, Heatmap]:
    trusted = {}
    for reading in readings:
        # without an attack the liars are not in the graph, so there is nobody to distrust
        if reading.status == "finished" and reading.attack != "none" and reading.seed == 0:
            trust = heatmap(shown.store, reading.key)
            if trust is not None:
                trusted[f"{reading.rule}, {reading.attack}"] = trust
    return trusted


def _networks(shown: Reproduction, readings: Sequence[Reading]) -> tuple[Any, ...]:
    """The graph with its liars, taken from any run because all have the same."""
    computed = [reading for reading in readings if reading.status != "not run"]
    if not computed:
        return ()
    net = Network.from_spec(shown.store.get(computed[0].key).config["network"])
    drawn = picture(net, net.name)
    return () if drawn is None else (drawn,)


def _figure_1(shown: Reproduction) -> Mapping[str, Any]:
    groups = _groups(shown.of("figure-1"), lambda reading: ("", reading.rule))
    return {
        "grids": (tables.figure_1_grid(shown.of("figure-1")),),
        "charts": (
            run_chart(shown.store, groups, "accuracy", "Accuracy"),
            run_chart(shown.store, groups, "disagreement", "Disagreement"),
        ),
    }


def _figure_4(shown: Reproduction) -> Mapping[str, Any]:
    readings = shown.of("figure-4")
    ended = [(("", reading.attack), float(_liars(reading)), reading) for reading in readings]
    final = Chart(
        title="Final accuracy", x_label="number of liars", y_label="accuracy (%)", facets=_end_curves(ended), marks=True
    )
    groups = _groups(readings, lambda reading: (reading.attack, reading.variant))
    return {
        "grids": (tables.figure_4_grid(readings),),
        "charts": (final, run_chart(shown.store, groups, "accuracy", "Accuracy over the rounds")),
    }


def _misjudged(shown: Reproduction) -> Mapping[str, Any]:
    readings = shown.of("misjudged-f")
    places = {"f - 1": -1.0, "exact": 0.0, "f + 1": 1.0}
    ended = []
    for reading in readings:
        graph, judged = reading.variant.split(", ")
        if judged in places:
            ended.append(((f"{graph}, {reading.attack}", reading.rule), places[judged], reading))
    facets = _end_curves(ended)
    chart = Chart(
        title="Final accuracy",
        x_label="f minus the true number of lying neighbours",
        y_label="accuracy (%)",
        facets=facets,
        marks=True,
    )
    return {"grids": tuple(tables.misjudged_grids(readings)), "charts": (chart,)}


def _end_curves(ended: Iterable[tuple[tuple[str, str], float, Reading]]) -> dict[str, tuple[Curve, ...]]:
    """Curves of final accuracies from ((facet, curve), x, reading); no point if no run finished."""
    points: dict[str, dict[str, dict[float, list[float]]]] = {}
    for (facet, name), x, reading in ended:
        if reading.status == "finished":
            points.setdefault(facet, {}).setdefault(name, {}).setdefault(x, []).append(reading.accuracy)
    return {
        facet: tuple(
            Curve(name=name, x=tuple(values), y=tuple(float(np.mean(group)) for group in values.values()))
            for name, values in named.items()
        )
        for facet, named in points.items()
    }


def _examples(shown: Reproduction) -> Mapping[str, Any]:
    readings = shown.of("examples")
    apart = _groups([r for r in readings if r.variant == "disagreement"], lambda reading: ("", reading.rule))
    biased = [r for r in readings if r.variant != "disagreement"]
    drift = run_chart(
        shown.store,
        _groups(biased, lambda reading: ("", reading.variant.removeprefix("fixed point, "))),
        "gradient",
        "Octopus: distance of the average model from x*",
    )
    if drift.facets:
        rounds = drift.facets[""][0].x
        line = Curve(name="predicted for equal weights", x=rounds[:: len(rounds) - 1], y=(biased_distance(),) * 2)
        drift = Chart(
            title=drift.title, x_label=drift.x_label, y_label="squared distance", facets={"": (*drift.facets[""], line)}
        )
    return {
        "grids": (tables.examples_grid(readings),),
        "charts": (run_chart(shown.store, apart, "disagreement", "Two-castle problem: disagreement"), drift),
        "pictures": _pictures("paper/two-castle-3", "octopus"),
    }


def report(shown: Reproduction, parts: Mapping[str, Section]) -> Report:
    """Everything as one report, the agreement with the published cells first; `parts` comes from `sections`."""
    sections = list(parts.values())
    cells = compare(shown.readings)
    if cells and not shown.quick:
        title, *text = SECTIONS["agreement"]
        sections.insert(0, Section(name="agreement", title=title, text=tuple(text), grids=(agreement_grid(cells),)))
    names: dict[str, str] = {}
    for reading in shown.readings:
        label = ", ".join(part for part in (reading.target, reading.rule, reading.attack, reading.variant) if part)
        names[reading.key] = f"{names[reading.key]}; {label}" if reading.key in names else label
    runs = [run for run in shown.store.list() if run.key in names]
    return Report(
        "byzmesh: the paper, reproduced", intro(shown.targets, shown.quick), tuple(sections), describe(runs, names)
    )


def _groups(
    readings: Sequence[Reading], place: Callable[[Reading], tuple[str, str]]
) -> dict[str, dict[str, list[str]]]:
    """Facet -> curve -> keys of the finished runs."""
    groups: dict[str, dict[str, list[str]]] = {}
    for reading in readings:
        if reading.status in ("finished", "diverged"):
            facet, name = place(reading)
            groups.setdefault(facet, {}).setdefault(name, []).append(reading.key)
    return groups


def _liars(reading: Reading) -> int:
    return int(reading.variant.split()[0])


def _pictures(*names: str) -> tuple[Any, ...]:
    return tuple(picture(network(name), name) for name in names)


def biased_distance() -> float:
    """||sum_n p_n z_n - x*||^2 of the second example: where equal weights on the octopus graph settle.

    p is the left eigenvector of W for the eigenvalue 1, z_n = -1 on the head and 1 on the arms, x* = 0. By hand:
    p_n is proportional to d_n + 1, that is 7 on the head and 2 on the arms, and (-6 * 7 + 6 * 2) / 54 = -5/9.

    >>> round(biased_distance(), 6) == round((5 / 9) ** 2, 6)
    True
    """
    mixing = network("octopus", head=6, weights="equal").mixing
    values, vectors = np.linalg.eig(mixing.T)
    share = np.real(vectors[:, np.argmax(np.real(values))])
    centre = np.repeat([-1.0, 1.0], len(mixing) // 2)
    return float((share / share.sum() @ centre) ** 2)
