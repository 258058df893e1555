"""Kernels: the order of compiling changes no bits; processes that compile at once wait for each other's code."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import caching
from numba.core.caching import IndexDataCacheFile
from numba.core.errors import TypingError

from byzmesh import compiled
from byzmesh.compiled import _CacheFile, exact, fast, over_few


@fast
def doubled(values: Any) -> Any:
    return values + values


def test_a_kernel_is_cached_by_its_signature() -> None:
    for dtype in (np.float32, np.float64):
        assert doubled(np.ones(3, dtype)).dtype == dtype
    files = doubled._cache._cache_file  # type: ignore[attr-defined]
    assert type(files) is _CacheFile
    assert len(set(files._load_index().values())) == len(doubled.signatures)  # type: ignore[attr-defined]


def writes_of(files: Any, key: str, monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """What saving this key's code into an empty cache would write, in order."""
    writes: list[Callable[[], None]] = []
    with monkeypatch.context() as patch:
        for name in ("_save_index", "_save_data"):
            write = getattr(files, name)
            patch.setattr(files, name, lambda *content, write=write: writes.append(partial(write, *content)))
        files.save(key, f"code of {key}")
    return writes


@pytest.mark.parametrize("kind", [_CacheFile, IndexDataCacheFile])
def test_two_processes_that_save_at_once_do_not_swap_their_code(
    kind: type[IndexDataCacheFile], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swapped = 0
    for number, turns in enumerate(sorted(set(permutations("oott")))):
        folder = tmp_path / str(number)
        folder.mkdir()
        files = kind(str(folder), "kernel", "stamp")
        writes = {"o": writes_of(files, "one", monkeypatch), "t": writes_of(files, "two", monkeypatch)}
        for turn in turns:
            writes[turn].pop(0)()
            swapped += any(files.load(key) not in (None, f"code of {key}") for key in ("one", "two"))
    assert (swapped == 0) == (kind is _CacheFile), "Numba's own cache file is the mutant that must be caught"


COMPILES = """
import sys
from byzmesh.compiled import _CacheFile
files = _CacheFile(sys.argv[1], "kernel", "stamp")
assert files.load("key") is None
print("compiling", flush=True)
sys.stdin.readline()
files.save("key", "code")
print("saved", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("ending", ["saves", "dies", "never"])
def test_who_needs_what_another_process_compiles_waits_and_loads_it(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", COMPILES, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdin is not None and other.stdout is not None
    assert other.stdout.readline() == "compiling\n"
    waits = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if ending == "saves":
            assert other.communicate("now\n")[0] == "saved\n"
        elif ending == "dies":
            other.kill()
            other.wait()

    monkeypatch.setattr("byzmesh.compiled.time.sleep", wait)
    monkeypatch.setattr(compiled, "_held", [])
    if ending == "never":
        monkeypatch.setattr(compiled, "LONGEST_WAIT", 0.0)
    files = _CacheFile(str(tmp_path), "kernel", "stamp")
    assert files.load("key") == ("code" if ending == "saves" else None)
    assert len(waits) == (ending != "never")
    assert len(compiled._held) == (ending != "never")
    assert files.load("another") is None, "one key keeps nobody from the others"
    other.kill()
    other.communicate()


def test_nothing_stays_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_held", [])

    @fast
    def halved(values: Any) -> Any:
        return values / 2

    @exact
    def impossible(values: Any) -> Any:
        return halved(values) + "one"

    with pytest.raises(TypingError):
        impossible(np.ones(2))
    assert compiled._held == []


def test_what_cannot_be_kept_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    @exact
    def tripled(values: Any) -> Any:
        return 3 * values

    def full(*content: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(_CacheFile, "_save_data", full)
    assert tripled(np.ones(2)).tolist() == [3.0, 3.0]
    assert tripled._cache._cache_file._load_index() == {}  # type: ignore[attr-defined]


def add_square(x: Any, c: Any) -> Any:
    return c + x**2


@pytest.mark.parametrize(("dtype", "order"), [(np.float64, "exact first"), (np.float32, "fast first")])
def test_what_was_compiled_before_changes_no_bits(dtype: type[np.floating[Any]], order: str) -> None:
    """x^2 is not representable: rounding it before the sum gives 0, a fused multiply-add does not."""
    small = np.finfo(dtype).eps * 2**8
    x, c = dtype(1 + small), dtype(-(1 + 2 * small))
    kernels = {"exact": exact(add_square), "fast": fast(add_square)}
    for kernel in kernels.values():
        kernel._cache.disable()  # type: ignore[attr-defined]
    results = {name: kernels[name](x, c) for name in sorted(kernels, reverse=order == "fast first")}
    assert results["exact"] == 0.0
    assert results["fast"] > 0.0, "on a processor without fused multiply-add this is 0, and the test shows nothing"


@pytest.mark.parametrize("threads", [1, 2])
def test_a_few_at_a_time_covers_everything_once_and_in_order(threads: int) -> None:
    seen: list[slice] = []
    over_few(seen.append, 23, 5, 4, threads)
    assert sorted(i for part in seen for i in range(part.start, part.stop)) == list(range(23))
    assert all(0 < part.stop - part.start <= 5 for part in seen)
    over_few(seen.append, 0, 5, 4, threads)
    assert sum(part.stop - part.start for part in seen) == 23


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_in_a_few_is_raised(threads: int) -> None:
    with pytest.raises(IndexError, match="out of range"):
        over_few(lambda part: [][part.start], 23, 5, 4, threads)


def test_compiling_is_said_once_and_is_not_computing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(compiled._Spent, "announced", False)
    monkeypatch.setattr(compiled, "_held", [])

    @exact
    def inner(values: Any) -> Any:
        return values - 1

    @exact
    def outer(values: Any) -> Any:
        return inner(values) * 2

    for kernel, folder in ((inner, "inner"), (outer, "outer")):
        (tmp_path / folder).mkdir()
        kernel._cache._cache_file = _CacheFile(str(tmp_path / folder), folder, "stamp")  # type: ignore[attr-defined]
    with caplog.at_level("INFO", logger="byzmesh"):
        began, computed = time.perf_counter(), compiled.computing_time()
        assert outer(np.ones(1))[0] == 0.0
        ended, computed = time.perf_counter(), compiled.computing_time() - computed
    assert [record.getMessage() for record in caplog.records] == [
        "compiling kernels for this processor, which takes up to a minute; later runs find them"
    ]
    assert 0.0 <= computed < ended - began, "the time of the inner kernel is part of that of the outer one"


def test_another_process_that_says_so_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    code = (
        "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX, 1, 0); print(flush=True); input()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "byzmesh.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        other.stdout.readline()
        monkeypatch.setattr(compiled._Spent, "announced", False)
        with caplog.at_level("INFO", logger="byzmesh"):
            compiled._announce(str(tmp_path))
        other.communicate("\n")
    assert caplog.records == []


def test_a_read_only_installation_keeps_its_kernels_in_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(compiled._Spent, "announced", False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(caching.config, "CACHE_DIR", "")

    def refuse(locator: object) -> None:
        raise OSError("read-only file system")

    def add_one(values: Any) -> Any:
        return values + 1

    monkeypatch.setattr(caching.InTreeCacheLocator, "ensure_cache_path", refuse)
    assert Path(exact(add_one)._cache.cache_path).is_relative_to(tmp_path)  # type: ignore[attr-defined]
    monkeypatch.setattr(caching.UserWideCacheLocator, "ensure_cache_path", refuse)
    with caplog.at_level("INFO", logger="byzmesh"):
        assert exact(add_one)(np.ones(1))[0] == 2.0
    assert "set NUMBA_CACHE_DIR" in caplog.text


def test_loading_numba_leaves_its_linear_algebra_as_it_was() -> None:
    from numba.np import arraymath, linalg

    compiled._load_numba.__wrapped__()
    assert linalg.ensure_blas.__module__ == linalg.__name__
    assert arraymath._HAVE_BLAS


def test_loading_a_kernel_does_not_load_the_compiler() -> None:
    """A kernel that allocates and calls others, found on disk, needs nothing of what Numba compiles with."""
    code = (
        "import sys, numpy as np; from byzmesh.rules.gram.prepared_kernels import lifted; "
        "print(lifted(np.zeros((1, 1), np.int64), np.ones((1, 1)), 2, 3)[0].shape, 'numba.np.linalg' in sys.modules)"
    )
    for _ in range(2):  # the first one may have to compile
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["(3,", "2)", "False"]
