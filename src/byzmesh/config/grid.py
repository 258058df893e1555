"""Grids: one file that describes many runs.

    base:     {profile: paper, network: paper/two-castle}      common to all runs
    axes:     {rule: [IOS, {name: CC, tau: 0.1}],              all combinations of the axes' values
               seed: {from: 0, to: 4}}                         a range, `to` included; with `step` or `count`
    zip:      [{network.k: [3, 6], rounds: [1000, 4000]}]      axes that move together
    cases:    {iid: {problem.partition: iid},                  named sets of values, one more axis
               non-iid: {problem.partition: one-class, rule.tau: 0.3}}
    exclude:  [{rule: Krum, case: non-iid}]                    combinations to leave out; a list means any of its values
    plugins:  [mine.py]                                        scripts or modules whose rules, attacks, ... it names

Keys are those of a config, or dotted paths into it (`rule.tau`). Shorter paths are set first, so that `rule.tau`
changes whatever `rule` was chosen. The order of the runs: cases, then zips, then axes, the last one fastest.

An attack where nobody lies is an error. But if a grid varies the number of liars (`network.byzantine: [0, 1, 2]`), the
runs without liars are the baseline: they have attack `none`, once for all attacks, and their cells say so.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from byzmesh.checks import whole
from byzmesh.config.cell import Cell, make_cell
from byzmesh.config.code import CodeReader
from byzmesh.config.keys import assign, lookup, matches
from byzmesh.config.overrides import with_plugins
from byzmesh.config.schema import KEYS, resolve
from byzmesh.config.yaml import read_yaml
from byzmesh.errors import ByzmeshError, ConfigError, NoLiars, UnknownOption, nearest
from byzmesh.plugins import load_plugins

PARTS = ("base", "axes", "zip", "cases", "exclude", "plugins")
CASE = "case"
"""The label that holds the name of a cell's case."""

BASELINE = "nobody lies: run with attack none"

Values = Mapping[str, Any]


def read_grid(path: str | Path, plugins: Iterable[str] = ()) -> list[Cell]:
    """The runs that a grid file describes; relative file names in it are relative to its folder.

    plugins  loaded in addition to those that the file names
    """
    path = Path(path)
    try:
        return expand(with_plugins(read_yaml(path), plugins), path.parent)
    except ConfigError as error:
        raise ConfigError(str(error) if str(path) in str(error) else f"{path}: {error}") from error


def expand(grid: Values, folder: str | Path = ".") -> list[Cell]:
    """The runs of a grid, each once, in the order of the grid.

    >>> cells = expand({
    ...     "base": {"problem": "quadratic", "network": {"name": "ring", "n": 5}},
    ...     "axes": {"rule": ["ios", "weimean"], "seed": {"from": 0, "to": 1}},
    ...     "exclude": [{"rule": "mean", "seed": 1}],
    ... })
    >>> [cell.labels for cell in cells]
    [{'rule': 'ios', 'seed': 0}, {'rule': 'ios', 'seed': 1}, {'rule': 'weimean', 'seed': 0}]

    The config of one run is a grid of one point.
    """
    if grid and not set(grid) & (set(PARTS) - {"plugins"}) and set(grid) <= set(KEYS):
        grid = {"base": grid}  # the config of one run
    for key in grid:
        if key not in PARTS:
            hint = "write it under base" if key in KEYS else nearest(str(key), PARTS)
            raise UnknownOption(f"grid has no key {key!r}: {hint}")
    base = with_plugins(_mapping("base", grid.get("base")), _names("plugins", grid.get("plugins")))
    # loaded here, because excludes use names and aliases too
    load_plugins(_names("plugins", base.get("plugins")), folder)
    excluded = [_mapping("exclude", item) for item in _items("exclude", grid.get("exclude"))]
    unused = set(range(len(excluded)))
    cells: dict[str, Cell] = {}
    reader = CodeReader()
    for values, label in _combinations(grid):
        written: dict[str, Any] = {}
        for path, value in sorted({**base, **values}.items(), key=lambda item: item[0].count(".")):
            assign(written, path, value)
        hits = {number for number, item in enumerate(excluded) if _is_excluded(item, written, label)}
        unused -= hits
        if not hits:
            cell = _cell(written, label, folder, reader, counts_liars=_says_who_lies(values))
            cells.setdefault(cell.key, cell)
    if unused:
        item = excluded[min(unused)]
        raise ConfigError(f"grid exclude {_shown(item)} matches no combination; correct or remove it")
    if not cells:
        raise ConfigError("grid has no runs: every combination is excluded; remove an exclude")
    return list(cells.values())


def _cell(
    written: dict[str, Any], label: dict[str, Any], folder: str | Path, reader: CodeReader, *, counts_liars: bool
) -> Cell:
    """The cell of a combination.

    counts_liars  whether the grid varies who lies: a run without liars is then a baseline, not a mistake
    """
    note = ""
    try:
        if CASE in label:
            assign(written, f"labels.{CASE}", label[CASE])
        try:
            config = resolve(written, folder)
        except NoLiars:
            if not counts_liars:
                raise
            config, note = resolve({**written, "attack": "none"}, folder), BASELINE
            label = {path: value for path, value in label.items() if not path.startswith("attack.")}
            label["attack"] = "none"
    except ByzmeshError as error:
        raise ConfigError(f"{error}{f' (at {_shown(label)})' if label else ''}") from error
    return make_cell(config, label, reader, note=note)


def _says_who_lies(values: Values) -> bool:
    network = values.get("network")
    return "network.byzantine" in values or (isinstance(network, Mapping) and "byzantine" in network)


def _shown(values: Values) -> str:
    return ", ".join(f"{path} = {value}" for path, value in values.items())


def _combinations(grid: Values) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """(values by path, label) of all combinations."""
    steps: list[list[tuple[Values, Values]]] = []
    owners: dict[str, str] = {}
    cases = _mapping("cases", grid.get("cases"))
    if cases:
        chosen = {name: _mapping(f"cases {name}", overrides) for name, overrides in cases.items()}
        _own(owners, "cases", dict.fromkeys(path for overrides in chosen.values() for path in overrides))
        steps.append([(overrides, {CASE: name}) for name, overrides in chosen.items()])
    for number, item in enumerate(_items("zip", grid.get("zip"))):
        group = {path: _axis(path, values) for path, values in _mapping("zip", item).items()}
        _own(owners, f"zip group {number + 1}", group)
        lengths = {path: len(values) for path, values in group.items()}
        if len(set(lengths.values())) > 1:
            raise ConfigError(f"grid zip: axes that move together must have the same length, got {_shown(lengths)}")
        points = [dict(zip(group, values, strict=True)) for values in zip(*group.values(), strict=True)]
        steps.append([(point, point) for point in points])
    axes = {path: _axis(path, values) for path, values in _mapping("axes", grid.get("axes")).items()}
    _own(owners, "axes", axes)
    steps += [[({path: value}, {path: value}) for value in values] for path, values in axes.items()]
    for combination in itertools.product(*steps):
        yield (
            {path: value for values, _ in combination for path, value in values.items()},
            {path: value for _, label in combination for path, value in label.items()},
        )


def _own(owners: dict[str, str], part: str, paths: Iterable[str]) -> None:
    """Raise if two parts of a grid set the same path: one would silently override the other."""
    for path in paths:
        if path.split(".")[0] not in KEYS:
            raise UnknownOption(f"grid {part}: config has no key {path!r}: {nearest(path.split('.')[0], KEYS)}")
        if path in owners:
            raise ConfigError(f"grid sets {path} in {owners[path]} and in {part}; set it in one of them")
        owners[path] = part


def _axis(path: str, values: Any) -> list[Any]:
    """The values of an axis: a list, or a range."""
    if isinstance(values, Mapping):
        return _range(path, values)
    if not isinstance(values, list) or not values:
        raise ConfigError(f"grid axis {path} must be a list of values or a range (from, to, step), got {values!r}")
    return list(values)


def _range(path: str, given: Values) -> list[Any]:
    """from, from + step, ... up to and including `to`; or `count` values from `from` to `to`."""
    known = ("from", "to", "step", "count")
    for key in given:
        if key not in known:
            raise UnknownOption(f"grid axis {path}: a range has no key {key!r}: {nearest(str(key), known)}")
    if "from" not in given or "to" not in given or ("step" in given and "count" in given):
        raise ConfigError(f"grid axis {path}: a range needs from, to and either step (default 1) or count, got {given}")
    # In decimal numbers, as written: 0.1 + 2 * 0.1 is 0.3.
    first, last = (_decimal(path, key, given[key]) for key in ("from", "to"))
    if "count" in given:
        count = whole(f"grid axis {path}: count of a range", given["count"], 2)
        values = [first + (last - first) * number / (count - 1) for number in range(count)]
        integral = all(value == value.to_integral_value() for value in values)
    else:
        step = _decimal(path, "step", given.get("step", 1))
        if step == 0 or (last - first) / step < 0:
            raise ConfigError(f"grid axis {path}: step {step} does not lead from {first} to {last}; change its sign")
        values = [first + step * number for number in range(int((last - first) / step) + 1)]
        integral = isinstance(given["from"], int) and isinstance(given.get("step", 1), int)
    return [int(value) if integral else float(value) for value in values]


def _decimal(path: str, key: str, value: Any) -> Decimal:
    try:
        if isinstance(value, bool):
            raise ValueError
        return Decimal(repr(float(value)) if not isinstance(value, int) else value)
    except (TypeError, ValueError, ArithmeticError):
        raise ConfigError(f"grid axis {path}: {key} of a range must be a number, got {value!r}") from None


def _is_excluded(item: Values, written: Values, label: Values) -> bool:
    return all(
        label.get(CASE) in (wanted if isinstance(wanted, list) else [wanted])
        if path == CASE
        else matches(path, lookup(written, path), wanted)
        for path, wanted in item.items()
    )


def _mapping(part: str, value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigError(f"grid {part} must be a mapping, got {value!r}")
    return dict(value)


def _names(part: str, value: Any) -> list[str]:
    return [value] if isinstance(value, str) else _items(part, value)


def _items(part: str, value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ConfigError(f"grid {part} must be a list of mappings, got {value!r}")
    return value
