"""The one door to Numba: typed decorators for compiled kernels.

Kernels are cached on disk, so that a second process does not compile again: beside their source or, where that cannot
be written, in the user's cache (`NUMBA_CACHE_DIR` names another folder). Who compiles says so in the log `byzmesh`.
Kernels release the GIL, so that threads can divide a large round. `fast` lets the compiler reorder sums (needed to
vectorise a reduction); NaN and infinity stay.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import itertools
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, TypeVar

# Where Coverage.py is installed, Numba imports it to tell it of kernels: a twentieth of a second, if nobody traces.
_untraced = sys.modules.setdefault("coverage", None) is None  # type: ignore[arg-type]
import numba  # noqa: E402
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache  # noqa: E402
from numba.core.compiler_lock import global_compiler_lock  # noqa: E402
from numba.core.cpu import CPUContext  # noqa: E402
from numba.core.runtime import rtsys  # noqa: E402

if _untraced:
    del sys.modules["coverage"]

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

F = TypeVar("F", bound=Callable[..., Any])

_REORDER = {"reassoc", "contract", "nsz", "arcp"}
_threads: ContextVar[int] = ContextVar("threads", default=1)
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # glibc's mallopt parameters


class _CacheFile(IndexDataCacheFile):  # type: ignore[misc]
    """Numba's cache of one kernel, safe beside other processes that compile the same kernel.

    Numba numbers the data files: two processes that compile two signatures at once may both write file 1, and the index
    may then name it for the other signature. Here a file's number is a hash of its signature, and it is written before
    the index names it: at worst a process compiles once more. What cannot be written, on a full disk, is not kept.

    Whoever finds a signature missing locks it until it is saved; others that need it meanwhile wait, and load it.
    """

    def load(self, key: object) -> Any:
        found = super().load(key)
        if found is None:
            _announce(self._cache_path)
        if found is None and _lock(self._cache_path, _hash(self._index_name, key)):
            found = super().load(key)
        return found

    def save(self, key: object, data: object) -> None:
        name = self._data_name(_hash(key))
        with contextlib.suppress(OSError):
            self._save_data(name, data)
            self._save_index({**self._load_index(), key: name})


class _Cache(FunctionCache):  # type: ignore[misc]
    """Numba's cache, which loads what a compiler needs only if it must compile: that takes a quarter of a second.

    Numba pickles what a kernel closes over, and another kernel with a number that every process draws anew. Here it
    counts by its name, its code and what it closes over: kernels made of other kernels are found again.
    """

    def load_overload(self, sig: object, target_context: CPUContext) -> Any:
        rtsys.initialize(target_context)  # kernels that allocate call it
        with self._guard_against_spurious_io_errors():
            found = self._load_overload(sig, target_context)
        if found is None:
            _load_numba()
        return found

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return sig, codegen.magic_tuple(), _hash(*_parts_of(self._py_func))


def _parts_of(function: Any) -> Iterator[object]:
    """What tells a kernel from others of its file."""
    yield from (function.__module__, function.__qualname__, function.__code__.co_code)
    for cell in function.__closure__ or ():
        inner = getattr(cell.cell_contents, "py_func", None)
        yield from (repr(cell.cell_contents),) if inner is None else _parts_of(inner)


def _hash(*parts: object) -> int:
    return int(hashlib.sha256("".join(map(repr, parts)).encode()).hexdigest()[:15], 16)


LONGEST_WAIT = 120.0
"""Seconds to wait for another process that compiles the same: one that was stopped must not stop others."""
_held: list[tuple[int, int]] = []
"""The locks of this process: a file, and the byte of it that stands for a kernel and signature."""


@functools.cache
def _lock_file(folder: str) -> int | None:
    """It stays open: closing it would give up every lock on it."""
    try:
        return os.open(os.path.join(folder, "byzmesh.lock"), os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        return None


def _announce(folder: str | None) -> None:
    """Say once that kernels are compiled, to be kept in a folder or not; of several processes at once, one says it."""
    if _Spent.announced:
        return
    _Spent.announced = True
    file = None if folder is None else _lock_file(folder)
    if fcntl is not None and file is not None:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)  # until the process ends
        except OSError:
            return
    later = "later runs find them" if folder else "no folder to keep them in can be written: set NUMBA_CACHE_DIR"
    logging.getLogger("byzmesh").info("compiling kernels for this processor, which takes up to a minute; %s", later)


def _lock(folder: str, byte: int) -> bool:
    """Whether it is now this process's turn; without locks, on some systems and file systems, it is everybody's."""
    file = _lock_file(folder)
    ends = time.monotonic() + LONGEST_WAIT
    while fcntl is not None and file is not None and time.monotonic() < ends:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except (BlockingIOError, PermissionError):
            time.sleep(0.02)
        except OSError:
            break
        else:
            _held.append((file, byte))
            return True
    return False


class _Spent:
    """Time spent on compiling and loading kernels; compiling those that a kernel calls is part of compiling it."""

    seconds = 0.0
    depth = 0
    announced = False


def computing_time() -> float:
    """Seconds on a clock that stands still while kernels are compiled or loaded."""
    return time.perf_counter() - _Spent.seconds


def _in_turn(compiled: Any) -> None:
    """Take the time of this kernel's `compile`, and give up its locks when it ends, however it ends."""
    compile = compiled.compile

    def in_turn(signature: Any) -> Any:
        with global_compiler_lock:
            before, began = len(_held), time.perf_counter()
            _Spent.depth += 1
            try:
                if isinstance(compiled._cache, NullCache):
                    _load_numba()
                    _announce(None)
                return compile(signature)
            finally:
                _Spent.depth -= 1
                if _Spent.depth == 0:
                    _Spent.seconds += time.perf_counter() - began
                while len(_held) > before:
                    file, byte = _held.pop()
                    fcntl.lockf(file, fcntl.LOCK_UN, 1, byte)

    compiled.compile = in_turn


@functools.cache
def _load_numba() -> None:
    """Load what every kernel needs of Numba, without SciPy's linear algebra, a fifth of a second.

    Numba imports it here only to see whether it is there; a kernel that uses it makes sure again.
    """
    from numba.np import linalg

    check = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        linalg.ensure_blas = check


_subtarget = CPUContext.subtarget
_internal: dict[frozenset[str], dict[Any, Any]] = {}


def _subtarget_of_its_own(context: CPUContext, **options: Any) -> CPUContext:
    """A context for kernels with these options; what it compiles on the way, it shares with kernels of its flags only.

    Numba compiles `x ** 2`, `x.sum()` and the like as functions of their own, once in a process, with the flags of
    whichever kernel needs them first: without this the bits of a result depend on what was compiled before.
    """
    made: CPUContext = _subtarget(context, **options)
    if "fastmath" in options:
        made.cached_internal_func = _internal.setdefault(frozenset(options["fastmath"].flags), {})
    return made


CPUContext.subtarget = _subtarget_of_its_own


def _compile(function: F, **options: Any) -> F:
    options |= {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}  # nobody calls kernels from C
    try:
        compiled: Any = numba.njit(cache=True, **options)(function)
        compiled._cache.__class__ = _Cache
        compiled._cache._cache_file.__class__ = _CacheFile
    except RuntimeError:  # neither beside the source nor in the user's cache can anything be written
        compiled = numba.njit(**options)(function)
    _in_turn(compiled)
    kernel: F = compiled
    return kernel


def exact(function: F) -> F:
    """Compile with IEEE arithmetic in the order written."""
    return _compile(function)


def inner(function: F) -> F:
    """`exact` for what only kernels call, again and again: it may not create arrays, and counts no references to them.

    Counting those of an array that is handed on takes two atomic operations, as long as a hundred additions in
    registers. The caller holds them while this runs.
    """
    return _compile(function, _nrt=False, no_cpython_wrapper=True)


def fast(function: F) -> F:
    """Compile with sums that may be reordered; NaN and infinity still propagate."""
    return _compile(function, fastmath=_REORDER)


@functools.cache
def keep_memory() -> None:
    """Ask glibc to keep freed memory: every round allocates arrays, and fresh pages cost more than the arithmetic."""
    try:
        tune = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    tune(_TRIM_THRESHOLD, 1 << 30)
    tune(_MMAP_THRESHOLD, 1 << 30)


@contextlib.contextmanager
def limit_threads(threads: int) -> Iterator[None]:
    """Context in which BLAS and `over_parts` use this many threads."""
    from threadpoolctl import threadpool_limits

    before = _threads.set(threads)
    try:
        with threadpool_limits(limits=threads):
            yield
    finally:
        _threads.reset(before)


def over_parts(work: Callable[[slice], Any], count: int, least: int, threads: int | None = None) -> list[Any]:
    """The results of `work` on slices that cover range(count), in order; in threads if each has at least `least`.

    threads  default: that of `limit_threads`, 1 outside of it. Kernels release the GIL, so threads use all cores.
    """
    parts = _parts(count, least, threads)
    edges = [count * part // parts for part in range(parts + 1)]
    slices = [slice(low, high) for low, high in itertools.pairwise(edges)]
    if parts == 1:
        return [work(slices[0])]
    return list(_pool(parts).map(work, slices))


def over_few(work: Callable[[slice], Any], count: int, few: int, least: int, threads: int | None = None) -> None:
    """Call `work` on slices of at most `few` that cover range(count); threads as in `over_parts` take the next in turn.

    For rows that are read more than once: what a slice has read is still in the cache when it reads it again. A thread
    that is held up leaves more slices to the others.
    """
    slices = (slice(first, min(first + few, count)) for first in range(0, count, few))
    parts = _parts(count, least, threads)
    if parts == 1:
        for each in slices:
            work(each)
        return
    left = list(slices)[::-1]

    def take(_: int) -> None:
        while True:
            try:
                each = left.pop()
            except IndexError:
                return
            work(each)

    for _ in _pool(parts).map(take, range(parts)):
        pass


def divided(count: int, least: int) -> bool:
    """Whether `over_parts` would use more than one thread."""
    return _parts(count, least, None) > 1


def _parts(count: int, least: int, threads: int | None) -> int:
    """How many threads to divide the work among."""
    return max(1, min(_threads.get() if threads is None else threads, count // least))


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="byzmesh")


if hasattr(os, "register_at_fork"):
    # threads do not survive a fork: the child must not wait for the parent's
    os.register_at_fork(after_in_child=_pool.cache_clear)
