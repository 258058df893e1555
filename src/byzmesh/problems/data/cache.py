"""Decoded data sets on disk, memory-mapped: later processes start without decoding.

An entry is a folder of .npy files in the user's cache folder (`BYZMESH_CACHE`, else the platform's). A reader sees all
of it or nothing. A cache that cannot be read or written costs time, never the run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.files import replacing, replacing_folder

Arrays = dict[str, npt.NDArray[Any]]


def cache_dir() -> Path:
    """Folder of the cache: `BYZMESH_CACHE`, else the platform's folder for caches."""
    chosen = os.environ.get("BYZMESH_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "byzmesh"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home()))) / "byzmesh"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "byzmesh"


def cached(entry: str, names: tuple[str, ...], build: Callable[[], Arrays]) -> Arrays:
    """The arrays `names` of a cache entry, built and stored if the entry is missing or damaged."""
    folder = cache_dir() / entry
    try:
        return _read(folder, names)
    except (OSError, ValueError, EOFError):
        pass
    arrays = build()
    try:
        _write(folder, arrays)
        return _read(folder, names)
    except (OSError, ValueError, EOFError):
        return arrays


def _read(folder: Path, names: tuple[str, ...]) -> Arrays:
    # copy-on-write mapping: to Numba, read-only arrays are another type, compiled and cached separately
    return {name: np.asarray(np.load(folder / f"{name}.npy", mmap_mode="c", allow_pickle=False)) for name in names}


def _write(folder: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    # if another process was faster, one of the two entries remains, complete
    with replacing_folder(folder) as fresh:
        for name, array in arrays.items():
            with replacing(fresh / f"{name}.npy") as file:
                np.save(file, array, allow_pickle=False)
