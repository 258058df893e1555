"""The user's own data: an .npz with named arrays, or a .csv whose last column is the label.

    .npz   features, labels (and test_features, test_labels), or train_x, train_y (test_x, test_y)
    .csv   numbers, one sample per line, an optional header line, the label in the last column

Labels may be words: the classes are then the words in alphabetical order, and the data set keeps their names.
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


def read_table(path: Path) -> tuple[dict[str, npt.NDArray[Any]], tuple[str, ...]]:
    """The four arrays of a user's file, and the names of its classes if its labels are words."""
    if not path.is_file():
        raise DataError(f"no data file {path}; give the path of a .npz or .csv file")
    train_x, train_y, test_x, test_y = _read_npz(path) if path.suffix == ".npz" else _read_csv(path)
    train_y, test_y, names = _numbered(train_y, test_y)
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
    return arrays, names


def _numbered(train_y: Any, test_y: Any) -> tuple[Any, Any, tuple[str, ...]]:
    """Word labels as class numbers, with the words; other labels unchanged."""
    if train_y.dtype.kind != "U" or (test_y is not None and test_y.dtype.kind != "U"):
        return train_y, test_y, ()
    names = np.unique(train_y if test_y is None else np.concatenate([train_y, test_y]))
    numbered = [None if y is None else np.searchsorted(names, y).astype(np.int64) for y in (train_y, test_y)]
    return numbered[0], numbered[1], tuple(names.tolist())


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
            first, second = file.readline(), file.readline()
        header = not _is_number(first.split(",")[0])
        sample = (second if header else first).strip().split(",")
        if len(sample) > 1 and not _is_number(sample[-1]):
            return _with_words(path, header, len(sample))
        table = np.loadtxt(path, delimiter=",", skiprows=int(header), ndmin=2)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0].split(";")[0]  # what follows is about NumPy
        raise DataError(f"cannot read {path}: {reason}; write numbers separated by commas, the label last") from error
    if table.shape[1] < 2:
        raise DataError(f"{path} has {table.shape[1]} column; it needs features and, last, the label")
    labels = table[:, -1]
    return table[:, :-1], labels.astype(np.int64) if np.array_equal(labels, np.floor(labels)) else labels, None, None


def _with_words(path: Path, header: bool, columns: int) -> tuple[Any, Any, Any, Any]:
    """A table whose last column contains words."""
    numbers = np.loadtxt(path, delimiter=",", skiprows=int(header), ndmin=2, usecols=range(columns - 1))
    words = np.loadtxt(path, delimiter=",", skiprows=int(header), ndmin=1, usecols=columns - 1, dtype=str)
    words = np.char.strip(words)
    if (words == "").any():
        raise ValueError(f"sample {int(np.flatnonzero(words == '')[0]) + 1} has no label")
    return numbers, words, None, None


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
            raise DataError(f"{path}: {part} {what} contain NaN or infinity; clean the file")
    if y.dtype.kind in "ib" and y.min() < 0:
        raise DataError(f"{path}: {part} labels start at {y.min()}; number the classes from 0")
