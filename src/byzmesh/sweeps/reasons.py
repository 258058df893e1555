"""Why runs are computed although the store has the same configs: the code or the data changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from byzmesh._version import __version__
from byzmesh.config.cell import Cell
from byzmesh.config.changes import changes
from byzmesh.store import RunRecord, Store
from byzmesh.store.keys import config_text


def reasons(store: Store, cells: Sequence[Cell]) -> dict[str, tuple[str, ...]]:
    """Key -> what changed since a run of the same config was stored, for cells that are not in the store."""
    known = store.keys()
    missing = [cell for cell in cells if cell.key not in known]
    if not missing:
        return {}
    stored = {run.config_json: run for run in store.list(current=True)}
    changed = {}
    for cell in missing:
        former = stored.get(config_text(cell.config))
        if former is not None:
            changed[cell.key] = _versions(former, changes(former.code, cell.code))
    return changed


def _versions(former: RunRecord, texts: tuple[str, ...]) -> tuple[str, ...]:
    """The changes, with the versions of byzmesh for changes in byzmesh itself."""
    before = former.provenance.get("version")
    if before is None or before == __version__:
        return texts
    return tuple(f"{text} (byzmesh {before} -> {__version__})" if ": revision " in text else text for text in texts)


def summary(reasons: Iterable[tuple[str, ...]]) -> list[str]:
    """The reasons of many runs in a few lines.

    >>> summary([("rule mine changed",), ("rule mine changed",), ("rule mine changed", "attack x changed")])
    ['2 runs are computed again: rule mine changed', '1 run is computed again: rule mine changed, attack x changed']
    """
    counts = Counter(", ".join(texts) for texts in reasons if texts)
    return [f"{count} run{' is' if count == 1 else 's are'} computed again: {text}" for text, count in counts.items()]
