"""Reproduce the paper: run the cells of a target into a store, as far as it does not hold them yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from byzmesh.errors import UnknownName, nearest
from byzmesh.experiments.backlog import Show
from byzmesh.experiments.paper_grids import TARGETS, Cell, cells, configs
from byzmesh.experiments.runner import Outcome, sweep
from byzmesh.store import config_key


@dataclass(frozen=True)
class Reproduced:
    """The cells of a target with their keys in the store, and how the sweep ended (None if nothing was run)."""

    targets: tuple[str, ...]
    cells: tuple[tuple[Cell, str], ...]
    outcome: Outcome | None


def reproduce(
    target: str,
    store: str | Path,
    *,
    quick: bool = False,
    seeds: int = 1,
    run: bool = True,
    workers: int | None = None,
    dask: str | None = None,
    rules: Sequence[str] = (),
    attacks: Sequence[str] = (),
    show: Show = lambda backlog, record: None,
) -> Reproduced:
    """Compute what is missing of a target, see `paper_grids` (`all` for everything).

    quick    the short variant
    seeds    how many seeds of each cell, from 0
    run      False: nothing is computed, the cells are only looked up
    workers, dask, show   as in `runner.sweep`
    rules, attacks   what to restrict the cells to, all if empty
    """
    found = cells(target, quick=quick, seeds=seeds)
    for kind, asked in (("rule", rules), ("attack", attacks)):
        known = {getattr(cell, kind) for cell in found}
        for name in asked:
            if name not in known:
                raise UnknownName(f"{target} has no {kind} {name!r}: {nearest(name, known)}")
    chosen = [c for c in found if (not rules or c.rule in rules) and (not attacks or c.attack in attacks)]
    outcome = sweep(configs(chosen), store, workers=workers, dask=dask, show=show) if run else None
    keyed = tuple((cell, config_key(cell.config)) for cell in chosen)
    return Reproduced(TARGETS if target == "all" else (target,), keyed, outcome)
