"""The data of a torch problem: a data set by name or path, or the user's own torch data sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError, DataError
from byzmesh.problems.data.datasets import Dataset
from byzmesh.problems.data.datasets import dataset as find
from byzmesh.problems.neural.text import canonical_text, read_text


def held_data(given: Any, data_dir: str | None) -> Dataset:
    """The data set of a name or path, or of torch data sets, which are read into memory once.

    given  a name, a path, a mapping with `text`, a pair (train, test) of data sets, or one data set or pair (inputs,
           targets) of arrays, of which every fifth sample is for testing
    """
    if isinstance(given, str):
        return find(given, data_dir)
    if isinstance(given, Mapping):
        return read_text(given, data_dir)
    name = str(data_label(given))
    if is_table(given):
        x, y = (np.asarray(part) for part in given)
        (x, y), held_out = _checked(_kept(x), y, "given"), np.arange(len(x)) % 5 == 0
        train_x, train_y, test_x, test_y = x[~held_out], y[~held_out], x[held_out], y[held_out]
    elif isinstance(given, (tuple, list)):
        (train_x, train_y), (test_x, test_y) = _read(given[0], "train"), _read(given[1], "test")
    else:
        x, y = _read(given, "given")
        held_out = np.arange(len(x)) % 5 == 0
        train_x, train_y, test_x, test_y = x[~held_out], y[~held_out], x[held_out], y[held_out]
    if len(train_x) == 0:
        raise DataError(f"{name}: one sample is not enough to train and test; give more")
    if train_x.shape[1:] != test_x.shape[1:]:
        raise DataError(
            f"samples to train on have shape {train_x.shape[1:]}, to test {test_x.shape[1:]}; make them equal"
        )
    classes = 0 if train_y.dtype.kind == "f" else int(max(train_y.max(), test_y.max())) + 1
    flat = train_x.reshape(len(train_x), -1), test_x.reshape(len(test_x), -1)
    return Dataset(
        name=name,
        train_x=flat[0],
        train_y=train_y,
        test_x=flat[1],
        test_y=test_y,
        classes=classes,
        shape=train_x.shape[1:],
    )


def is_table(given: Any) -> bool:
    """Whether it is a pair of arrays or tensors (inputs, targets) of one length, not a pair of data sets."""
    pair = isinstance(given, (tuple, list)) and len(given) == 2
    return pair and all(hasattr(part, "shape") and len(part.shape) for part in given) and len(given[1].shape) == 1


def data_label(given: Any) -> str | dict[str, Any]:
    """The data in a config: a name, or the options of a text."""
    if isinstance(given, str):
        return given
    if isinstance(given, Mapping):
        return canonical_text(given)
    parts = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    pair = isinstance(given, (tuple, list))
    if (pair and len(parts) != 2) or not all(hasattr(part, "__getitem__") for part in parts):
        raise ConfigError(
            f"dataset must be a name, a path, a torch data set with __getitem__ or a pair (train, test) of them, "
            f"got {type(given).__name__}"
        )
    return ", ".join(f"{type(part).__name__}[{_length(part)}]" for part in parts)


def _length(part: Any) -> int:
    try:
        return len(part)
    except TypeError:
        raise DataError(f"data set {type(part).__name__} has no length; give one with __len__") from None


def sample_shape(given: Any, data: Dataset) -> tuple[int, ...]:
    """Shape of one sample for a module: as in the torch data set; grey images from files get a channel axis.

    >>> sample_shape("mnist", find("mnist"))
    (1, 28, 28)
    """
    shape = data.shape or (data.features,)
    return (1, *shape) if isinstance(given, str) and len(shape) == 2 else tuple(shape)


def _read(part: Any, name: str) -> tuple[Any, Any]:
    count = _length(part)
    if count == 0:
        raise DataError(f"the {name} data set is empty; give some samples")
    try:
        samples = [part[place] for place in range(count)]
        x = _kept(np.stack([np.asarray(sample[0]) for sample in samples]))
        y = np.array([_number(sample[1]) for sample in samples])
    except (TypeError, ValueError, IndexError, RuntimeError) as error:
        raise DataError(
            f"the {name} data set must consist of pairs (tensor, label) of one shape: {str(error).splitlines()[0]}"
        ) from error
    return _checked(x, y, name)


def _kept(x: Any) -> Any:
    """Inputs as they are kept: whole numbers (of tokens, of categories) whole, everything else in float32."""
    return x.astype(np.int64) if x.dtype.kind in "iu" and x.dtype != np.uint8 else x.astype(np.float32)


def _checked(x: Any, y: Any, name: str) -> tuple[Any, Any]:
    if len(x) != len(y):
        raise DataError(f"the {name} data set has {len(x)} inputs and {len(y)} targets; give one target per input")
    if not np.isfinite(x).all():
        raise DataError(f"the {name} data set contains NaN or infinity; clean it")
    if y.dtype.kind != "f":
        y = y.astype(np.int64)
        if y.min() < 0:
            raise DataError(f"{name} labels start at {y.min()}; number the classes from 0")
    return x, y


def _number(label: Any) -> Any:
    return label.item() if hasattr(label, "item") else label
