"""The IDX format of MNIST and its relatives: two zero bytes, a type byte, the number of dimensions, the dimensions as
big-endian 32-bit integers, then the numbers; usually compressed with gzip.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.errors import DataError

FILES = {
    "train_x": "train-images-idx3-ubyte",
    "train_y": "train-labels-idx1-ubyte",
    "test_x": "t10k-images-idx3-ubyte",
    "test_y": "t10k-labels-idx1-ubyte",
}
"""File of each array; `.gz` may follow."""


def read_idx(path: Path) -> npt.NDArray[np.uint8]:
    """The array of an IDX file of unsigned bytes, compressed or not.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "tiny").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))
    ...     read_idx(Path(folder, "tiny"))
    array([7, 8, 9], dtype=uint8)
    """
    try:
        raw = path.read_bytes()
        data = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot read {path}: {error}; get the file again") from error
    if len(data) < 4 or data[:3] != b"\x00\x00\x08":
        raise DataError(f"{path} is not an IDX file of unsigned bytes; get the file again")
    dimensions = data[3]
    shape = tuple(int(size) for size in np.frombuffer(data[4 : 4 + 4 * dimensions], ">u4"))
    body = data[4 + 4 * dimensions :]
    if len(shape) != dimensions or len(body) != int(np.prod(shape, dtype=np.int64)):
        raise DataError(f"{path} is cut short: its header says {shape}; get the file again")
    return np.frombuffer(body, np.uint8).reshape(shape)


def read_idx_folder(folder: Path) -> dict[str, npt.NDArray[Any]]:
    """The four arrays of an MNIST-like data set in a folder."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, stem in FILES.items():
        found = [path for path in (folder / f"{stem}.gz", folder / stem) if path.is_file()]
        if not found:
            raise DataError(f"{folder} has no file {stem}.gz; put the four IDX files there")
        arrays[name] = read_idx(found[0])
    return arrays
