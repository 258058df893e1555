"""The user's own data: an .npz with named arrays, or a .csv whose last column is the label.

    .npz   features, labels (and test_features, test_labels), or train_x, train_y (test_x, test_y)
    .csv   numbers, one sample per line, an optional header line, the label in the last column

Without a test part every fifth sample, counted from the first, is held out for testing.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.errors import DataError

_NAMES = (("features", "labels", "test_features", "test_labels"), ("train_x", "train_y", "test_x", "test_y"))


def read_table(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The four arrays of a user's file."""
    if not path.is_file():
        raise DataError(f"no data file {path}; give the path of a .npz or .csv file")
    train_x, train_y, test_x, test_y = _read_npz(path) if path.suffix == ".npz" else _read_csv(path)
    _check(path, "train", train_x, train_y)
    if test_x is None or test_y is None:
        held_out = np.arange(len(train_x)) % 5 == 0
        test_x, test_y, train_x, train_y = train_x[held_out], train_y[held_out], train_x[~held_out], train_y[~held_out]
    arrays = {"train_x": train_x, "train_y": train_y, "test_x": test_x, "test_y": test_y}
    if len(train_x) == 0:
        raise DataError(f"{path}: one sample is not enough to train and test; give more")
    _check(path, "test", test_x, test_y)
    if train_x.shape[1] != test_x.shape[1]:
        raise DataError(f"{path}: {train_x.shape[1]} features to train on, {test_x.shape[1]} to test; make them equal")
    return arrays


def _read_npz(path: Path) -> tuple[Any, Any, Any, Any]:
    try:
        with np.load(path, allow_pickle=False) as file:
            held = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(
            f"cannot read {path}: {error}; save it with numpy.savez(path, features=..., labels=...)"
        ) from error
    for names in _NAMES:
        if names[0] in held and names[1] in held:
            train_x, train_y, test_x, test_y = (held.get(name) for name in names)
            if (test_x is None) != (test_y is None):
                raise DataError(f"{path} has only one of {names[2]} and {names[3]}; give both or none")
            return np.asarray(train_x), train_y, None if test_x is None else np.asarray(test_x), test_y
    raise DataError(f"{path} has arrays {', '.join(sorted(held)) or '(none)'}; it needs features and labels")


def _read_csv(path: Path) -> tuple[Any, Any, Any, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            first = file.readline()
        table = np.loadtxt(path, delimiter=",", skiprows=0 if _is_number(first.split(",")[0]) else 1, ndmin=2)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"cannot read {path}: {reason}; write numbers separated by commas, the label last") from error
    if table.shape[1] < 2:
        raise DataError(f"{path} has {table.shape[1]} column; it needs features and, last, the label")
    labels = table[:, -1]
    return table[:, :-1], labels.astype(np.int64) if np.array_equal(labels, np.floor(labels)) else labels, None, None


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _check(path: Path, part: str, x: npt.NDArray[Any], y: npt.NDArray[Any]) -> None:
    if x.ndim < 2 or y.ndim != 1 or len(x) != len(y):
        raise DataError(
            f"{path}: {part} features have shape {x.shape} and labels {y.shape}; one row of features per label"
        )
    if len(x) == 0:
        raise DataError(f"{path}: no {part} samples; give some")
    for what, array in (("features", x), ("labels", y)):
        if array.dtype.kind not in "uifb":
            raise DataError(f"{path}: {part} {what} are {array.dtype}; they must be numbers")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise DataError(f"{path}: {part} {what} hold NaN or infinity; clean the file")
    if y.dtype.kind in "ib" and y.min() < 0:
        raise DataError(f"{path}: {part} labels start at {y.min()}; number the classes from 0")
