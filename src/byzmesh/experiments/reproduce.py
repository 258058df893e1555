"""Reproduce the paper: choose the cells of a target, and run those into a store that it does not hold yet."""

from __future__ import annotations

from collections.abc import Sequence

from byzmesh.errors import ConfigError, UnknownName, nearest
from byzmesh.experiments.paper_grids import Cell, cells


def choose(
    target: str, *, quick: bool = False, seeds: int = 1, rules: Sequence[str] = (), attacks: Sequence[str] = ()
) -> list[Cell]:
    """The cells of a target, see `paper_grids` (`all` for everything), restricted to rules and attacks if any is named.

    >>> [cell.attack for cell in choose("table-4", rules=["ios"], attacks=["none", "ALIE"])]
    ['none', 'alie']
    """
    found = cells(target, quick=quick, seeds=seeds)
    if not found and (rules or attacks):
        raise ConfigError(f"{target} is not made of runs; leave --rules and --attacks out")
    for kind, asked in (("rule", rules), ("attack", attacks)):
        known = {getattr(cell, kind).lower(): getattr(cell, kind) for cell in found}
        for name in asked:
            if name.lower() not in known:
                raise UnknownName(f"{target} has no {kind} {name!r}: {nearest(name, known.values())}")
        wanted = {name.lower() for name in asked}
        found = [cell for cell in found if not wanted or getattr(cell, kind).lower() in wanted]
    return found
