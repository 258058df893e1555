"""A planned run: what a grid or a study asks for, before it is in the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from byzmesh.config.code import CodeReader
from byzmesh.store import config_key


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One planned run.

    config  canonical, see `config.schema.resolve`
    code    the code and data of the run that are not built in, see `config.code`
    key     of config and code: identifies the run in the store
    labels  its names in the grid or table that asked for it: the values of axes, or row and column
    note    a remark for the user
    """

    config: dict[str, Any] = field(repr=False)
    code: Mapping[str, str] = field(repr=False)
    key: str = field(repr=False)
    labels: Mapping[str, Any]
    note: str = field(default="", repr=False)


def make_cell(
    config: dict[str, Any], labels: Mapping[str, Any] | None = None, reader: CodeReader | None = None, note: str = ""
) -> Cell:
    """The cell of a canonical config; a reader shared by many cells reads each part's code once.

    >>> from byzmesh.config.schema import resolve
    >>> make_cell(resolve({"network": {"name": "ring", "n": 5}}), {"row": "IOS"})
    Cell(labels={'row': 'IOS'})
    """
    code = (reader or CodeReader()).of(config)
    return Cell(config=config, code=code, key=config_key(config, code), labels=dict(labels or {}), note=note)


def make_cells(asked: Iterable[tuple[Mapping[str, Any], dict[str, Any]]]) -> list[Cell]:
    """The cells of many (labels, canonical config)."""
    reader = CodeReader()
    return [make_cell(config, labels, reader) for labels, config in asked]
