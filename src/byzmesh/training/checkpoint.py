"""The state of a run in one file, written atomically: a crash at any moment leaves the old file or the new one.

    8 bytes   magic BYZMESH1
    8 bytes   length of the header, little-endian
    header    JSON: {"metadata": ..., "arrays": [{"name", "dtype", "shape"}, ...]}
    arrays    their bytes, one after another, C order
    32 bytes  SHA-256 of everything before

Nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.errors import ConfigError, DataError
from byzmesh.files import replacing

_MAGIC = b"BYZMESH1"
_DIGEST = 32


def save_checkpoint(path: str | Path, arrays: Mapping[str, npt.NDArray[Any]], metadata: Mapping[str, Any]) -> None:
    """Write arrays of numbers and metadata (any JSON) to `path`, replacing it atomically.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_checkpoint(Path(folder, "run"), {"models": np.arange(3)}, {"round": 7})
    ...     load_checkpoint(Path(folder, "run"))
    ({'models': array([0, 1, 2])}, {'round': 7})
    """
    blocks = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    for name, array in blocks.items():
        if array.dtype.kind not in "biufc":
            raise ConfigError(f"array {name!r} of a checkpoint must contain numbers, got {array.dtype}")
    layout = [{"name": n, "dtype": array.dtype.str, "shape": array.shape} for n, array in blocks.items()]
    header = json.dumps({"metadata": dict(metadata), "arrays": layout}).encode()
    digest = hashlib.sha256()
    parts: list[Any] = [_MAGIC, len(header).to_bytes(8, "little"), header]
    with replacing(path) as file:
        for part in (*parts, *(array.reshape(-1).view(np.uint8).data for array in blocks.values())):
            digest.update(part)
            file.write(part)
        file.write(digest.digest())


def load_checkpoint(path: str | Path) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """(arrays, metadata) of a checkpoint; `DataError` if the file is missing, damaged or something else."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read checkpoint {path}: {error.strerror}; give the path of a checkpoint") from error
    if data[: len(_MAGIC)] != _MAGIC:
        raise DataError(f"{path} is not a checkpoint of byzmesh; give the path of one")
    if len(data) < len(_MAGIC) + 8 + _DIGEST or hashlib.sha256(data[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise DataError(f"checkpoint {path} is damaged or cut short (wrong checksum); use an older one or start again")
    position = len(_MAGIC) + 8
    length = int.from_bytes(data[len(_MAGIC) : position], "little")
    header = json.loads(data[position : position + length])
    position += length
    arrays = {}
    for entry in header["arrays"]:
        dtype, shape = np.dtype(entry["dtype"]), tuple(entry["shape"])
        count = int(np.prod(shape, dtype=np.int64))
        arrays[entry["name"]] = np.frombuffer(data, dtype, count, position).reshape(shape).copy()
        position += count * dtype.itemsize
    return arrays, header["metadata"]
