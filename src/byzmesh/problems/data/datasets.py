"""Data sets by name or path.

    mnist            embedded in the package
    fashion-mnist    four IDX files in `data_dir`, `BYZMESH_DATA` or a folder of that name in it, or where Debian's
                     package dataset-fashion-mnist puts them; else downloaded
    cifar-10         the binary version, found or downloaded likewise
    path.npz, .csv   the user's own (see user_files.py)

Bytes are scaled to [-1, 1] (mean 0.5, standard deviation 0.5 of p / 255); other numbers are not scaled.
Byte images that are mostly black are also kept as their non-zero pixels, for the sparse products.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.entries import fold
from byzmesh.errors import ConfigError, DataError, brief, nearest
from byzmesh.problems.data.cache import Arrays, cache_dir, cached
from byzmesh.problems.data.cifar import read_cifar_folder
from byzmesh.problems.data.idx import FILES, read_idx_folder
from byzmesh.problems.data.user_files import read_table

_EMBEDDED = Path(__file__).parent / "mnist"
_SYSTEM = Path("/usr/share/datasets")
"""Where Debian's packages put data sets."""
_DENSE = ("train_x", "train_y", "test_x", "test_y")
_SPARSE = tuple(f"{part}_{array}" for part in ("train", "test") for array in ("start", "column", "value"))
_FULL = 0.6  # share of non-zero pixels above which dense products are faster (benchmarks/gradients.py)

_MOST_CLASSES = 1000  # whole-number labels beyond are taken for numeric targets


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Samples and labels, in the order of their files.

    train_x, test_x  (M, F), (T, F) bytes or numbers; a feature's value is scale * x + offset
    train_y, test_y  (M,), (T,) class numbers, or numeric targets if `classes` is 0
    nonzero          start (M + 1,), column and value (nnz,) of each part's non-zero bytes, empty if not mostly black
    shape            of one sample before it became a row of F numbers, (28, 28) for MNIST; () if it was a row
    """

    name: str
    train_x: npt.NDArray[Any] = field(repr=False)
    train_y: npt.NDArray[Any] = field(repr=False)
    test_x: npt.NDArray[Any] = field(repr=False)
    test_y: npt.NDArray[Any] = field(repr=False)
    classes: int
    scale: float = 1.0
    offset: float = 0.0
    nonzero: dict[str, npt.NDArray[Any]] = field(default_factory=dict, repr=False)
    shape: tuple[int, ...] = ()
    class_names: tuple[str, ...] = ()
    """Names of the classes in the file; () if it numbers them."""
    tokens: bool = False
    """Whether a sample is a window of tokens, of which there are `classes`: the targets are each the next one, and the
    labels only say which part of the text it is from."""

    @property
    def whole(self) -> bool:
        """Whether the samples are whole numbers to a module, not bytes of an image: token or category numbers."""
        return self.train_x.dtype.kind in "iu" and self.train_x.dtype != np.uint8

    @property
    def features(self) -> int:
        """F."""
        return int(self.train_x.shape[1])


@dataclass(frozen=True, kw_only=True)
class _Source:
    """Where a public data set comes from."""

    read: Callable[[Path], Arrays]
    url: str
    files: dict[str, str]
    """File name -> checksum."""
    archive: bool = False
    package: str = ""
    """The Debian package that contains it."""


_SOURCES = {
    "fashion-mnist": _Source(
        read=read_idx_folder,
        url="http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        files={
            f"{FILES['train_x']}.gz": "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            f"{FILES['train_y']}.gz": "md5:25c81989df183df01b3e8a0aad5dffbe",
            f"{FILES['test_x']}.gz": "md5:bef4ecab320f06d8554ea6380940ec79",
            f"{FILES['test_y']}.gz": "md5:bb300cfdad3c16e7a12a480ee83cd310",
        },
        package="dataset-fashion-mnist",
    ),
    "cifar-10": _Source(
        read=read_cifar_folder,
        url="https://www.cs.toronto.edu/~kriz/",
        files={"cifar-10-binary.tar.gz": "md5:c32a1d4ab5d03f1284b67883e8d87530"},
        archive=True,
    ),
}
DATASETS = ("mnist", *_SOURCES)
"""Names of the data sets."""


def dataset(name: str, data_dir: str | None = None) -> Dataset:
    """The data set of a name (`mnist`, `fashion-mnist`, `cifar-10`) or of a path to a .npz or .csv file.

    >>> digits = dataset("mnist")
    >>> digits.train_x.shape, digits.test_x.shape, digits.classes
    ((60000, 784), (10000, 784), 10)
    """
    if not isinstance(name, str):
        raise ConfigError(
            f"dataset must be a name or the path of a .csv or .npz file, got {type(name).__name__} {brief(name)}"
        )
    if name.endswith((".npz", ".csv")):
        path = Path(name).expanduser()
        arrays, names = read_table(path if data_dir is None else Path(data_dir).expanduser() / path)
        return replace(_record(path.name, arrays), class_names=names)
    known = {fold(word): word for word in DATASETS}
    if fold(name) not in known:
        raise ConfigError(f"unknown data set {name!r}: {nearest(name, DATASETS)}, or a path ending in .npz or .csv")
    name = known[fold(name)]
    if name == "mnist":
        return _stored("mnist-2", name, lambda: read_idx_folder(_EMBEDDED))
    local = _local(name, data_dir)
    if local is not None:
        return _record(name, local)
    system = _SYSTEM / name
    return _stored(f"{name}-2", name, lambda: _SOURCES[name].read(system if system.is_dir() else _download(name)))


def _stored(entry: str, name: str, read: Callable[[], Arrays]) -> Dataset:
    """A data set through the cache of decoded arrays."""
    return _record(name, cached(entry, _DENSE, read), entry)


def _record(name: str, arrays: Arrays, entry: str | None = None) -> Dataset:
    """The record of four arrays; `entry` names the cache entry of the non-zero bytes (default: by their hash)."""
    arrays = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
    shape = arrays["train_x"].shape[1:] if arrays["train_x"].ndim > 2 else ()
    train, test = (arrays[key].reshape(len(arrays[key]), -1) for key in ("train_x", "test_x"))
    labels = arrays["train_y"]
    classes = 0 if labels.dtype.kind == "f" else int(max(labels.max(), arrays["test_y"].max())) + 1
    classes = 0 if classes > _MOST_CLASSES else classes
    if train.dtype != np.uint8 or test.dtype != np.uint8:
        return Dataset(
            name=name, train_x=train, train_y=labels, test_x=test, test_y=arrays["test_y"], classes=classes, shape=shape
        )
    if entry is None:
        digest = hashlib.blake2b(train.data, digest_size=10)
        digest.update(test.data)
        entry = digest.hexdigest()
    # computing the non-zero bytes takes longer than reading them
    held = cached(f"{entry}-nonzero", _SPARSE, lambda: nonzero(train, test))
    sparse = held if len(held["train_start"]) else {}
    return Dataset(
        name=name,
        train_x=train,
        train_y=labels,
        test_x=test,
        test_y=arrays["test_y"],
        classes=classes,
        scale=2 / 255,
        offset=-1.0,
        nonzero=sparse,
        shape=shape,
    )


def nonzero(train: npt.NDArray[Any], test: npt.NDArray[Any], full: float = _FULL) -> Arrays:
    """The non-zero bytes of two (samples, features) arrays by rows; empty arrays if the first is too full."""
    arrays: Arrays = {}
    black = train.shape[1] < 1 << 16 and np.count_nonzero(train) < full * train.size
    for part, x in (("train", train), ("test", test)):
        rows, columns = np.nonzero(x if black else x[:0])
        counts = np.bincount(rows, minlength=len(x)) if black else np.zeros(0, np.int64)
        arrays[f"{part}_start"] = np.concatenate([np.zeros(int(black), np.int64), np.cumsum(counts, dtype=np.int64)])
        arrays[f"{part}_column"] = columns.astype(np.uint16)
        arrays[f"{part}_value"] = x[rows, columns].astype(np.uint8)
    return arrays


def _local(name: str, data_dir: str | None) -> Arrays | None:
    """The arrays from the user's folder, if there is one; an explicit `data_dir` must have them."""
    given = data_dir or os.environ.get("BYZMESH_DATA")
    if not given:
        return None
    parent = Path(given).expanduser()
    if data_dir and not parent.is_dir():
        raise DataError(f"data_dir {parent} is not a folder; give the folder with {name}'s files")
    for folder in (parent / name, parent):
        try:
            return _SOURCES[name].read(folder)
        except DataError:
            if data_dir and folder == parent:
                raise
    return None


def _download(name: str) -> Path:
    """The folder of the downloaded files; checksums are compared."""
    import pooch

    source = _SOURCES[name]
    folder = cache_dir() / "downloads" / name
    pooch.get_logger().setLevel("WARNING")
    try:
        for file, checksum in source.files.items():
            unpack = pooch.Untar(extract_dir=".") if source.archive else None
            pooch.retrieve(source.url + file, checksum, fname=file, path=folder, processor=unpack)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        install = f"install Debian's package {source.package}, or " if source.package else ""
        raise DataError(
            f"cannot download {name}: {reason}; {install}put {', '.join(source.files)} into a folder and give it as "
            "data_dir"
        ) from error
    return folder
