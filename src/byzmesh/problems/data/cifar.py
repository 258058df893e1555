"""CIFAR-10's binary version: records of one label byte and 3,072 pixel bytes (32 x 32 red, then green, then blue)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.errors import DataError

_RECORD = 1 + 3 * 32 * 32
_TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
_TEST = ("test_batch.bin",)


def read_cifar_folder(folder: Path) -> dict[str, npt.NDArray[Any]]:
    """The four arrays from the folder that holds data_batch_1.bin to data_batch_5.bin and test_batch.bin."""
    inner = folder / "cifar-10-batches-bin"
    if inner.is_dir():
        folder = inner
    arrays: dict[str, npt.NDArray[Any]] = {}
    for part, names in (("train", _TRAIN), ("test", _TEST)):
        records = _records(folder, names)
        arrays |= {f"{part}_x": records[:, 1:].reshape(-1, 3, 32, 32), f"{part}_y": records[:, 0]}
    return arrays


def _records(folder: Path, names: tuple[str, ...]) -> npt.NDArray[np.uint8]:
    parts = []
    for name in names:
        path = folder / name
        if not path.is_file():
            raise DataError(f"{folder} has no file {name}; put CIFAR-10's binary version there")
        data = np.frombuffer(path.read_bytes(), np.uint8)
        if data.size == 0 or data.size % _RECORD:
            raise DataError(f"{path} is damaged: {data.size} bytes are not whole records of {_RECORD}; get it again")
        parts.append(data.reshape(-1, _RECORD))
    records = np.concatenate(parts)
    if records[:, 0].max() > 9:
        raise DataError(f"{folder / names[0]} holds a label above 9: not CIFAR-10's binary version; get it again")
    return records
