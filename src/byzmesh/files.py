"""Atomic writes: a file is either complete or unchanged, whatever crashes in between."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from byzmesh.checks import choice
from byzmesh.errors import ConfigError

CHECKPOINT_SECONDS = 15.0
"""How often the simulator and peers write the state of a run by default."""


def _beside(path: Path) -> Path:
    """A new name in the same folder, hidden, for what is not complete yet."""
    return path.with_name(f".{path.name}-{os.urandom(6).hex()}")


@contextmanager
def replacing(path: str | Path, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """A binary file that replaces `path` if the block ends without an error; otherwise `path` is unchanged.

    durable  wait until the content is on disk, so that a power failure leaves the old file or the new one

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder, "note")
    ...     with replacing(target) as file:
    ...         _ = file.write(b"whole")
    ...     target.read_bytes(), [path.name for path in Path(folder).iterdir()]
    (b'whole', ['note'])
    """
    path = Path(path)
    temporary = _beside(path)
    try:
        with temporary.open("xb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    if durable:
        sync_folder(path.parent)


@contextmanager
def replacing_folder(path: str | Path) -> Iterator[Path]:
    """An empty folder that replaces `path`, if that exists, when the block ends without an error.

    `OSError` if another process creates the folder at the same moment.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     with replacing_folder(Path(parent, "entry")) as fresh:
    ...         _ = Path(fresh, "note").write_bytes(b"whole")
    ...     Path(parent, "entry", "note").read_bytes(), len(list(Path(parent).iterdir()))
    (b'whole', 1)
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = _beside(path)
    fresh.mkdir()
    try:
        yield fresh
        if path.exists():
            old = fresh.with_name(f"{fresh.name}-old")
            path.rename(old)
            shutil.rmtree(old, ignore_errors=True)
        fresh.rename(path)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def create(path: str | Path, content: str | bytes, *, mode: int = 0o666) -> None:
    """Write a new file atomically; `FileExistsError` if it exists, even if another process was only just faster.

    mode  who may read and write it, minus the umask
    """
    path = Path(path)
    temporary = _beside(path)
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)
    finally:
        temporary.unlink()


def write(path: str | Path, content: str | bytes, *, option: str = "--out", durable: bool = False) -> Path:
    """Write a file atomically; `ConfigError` that names the `option` to change if it cannot be written."""
    path = Path(path)
    try:
        with replacing(path, durable=durable) as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written ({error.strerror or error}); give another {option}") from None
    return path


def save_figure(figure: Any, path: str | Path, *, option: str = "--out") -> Path:
    """Write a matplotlib figure as PNG, SVG or PDF, by suffix; the same data give the same bytes."""
    path = Path(path)
    suffix = figure_suffix(path)
    import matplotlib

    content = io.BytesIO()
    # Without these the file would contain the date and random ids.
    undated: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with matplotlib.rc_context({"svg.hashsalt": "byzmesh"}):
        figure.savefig(content, format=suffix.removeprefix("."), dpi=150, metadata=undated.get(suffix))
    return write(path, content.getvalue(), option=option)


def figure_suffix(path: str | Path) -> str:
    """The suffix of a picture's file, in lower case.

    >>> figure_suffix("a.gif")
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: a.gif: the suffix must be .png, .svg or .pdf, got '.gif'
    """
    return choice(f"{path}: the suffix", Path(path).suffix.lower(), (".png", ".svg", ".pdf"))


def folder(path: str | Path, *, option: str = "--out") -> Path:
    """The folder, created if missing; `ConfigError` that names the `option` to change if it cannot be created."""
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"folder {path} cannot be created ({error.strerror}); give another {option}") from None
    return path


def folder_later(path: str | Path) -> Path:
    """The folder, not created yet: what would be wrong with it is raised now, and a mistake found later leaves none."""
    path = Path(path).absolute()
    try:
        os.stat(path)
    except FileNotFoundError:
        pass
    except OSError:
        return folder(path)
    there = next(parent for parent in (path, *path.parents) if os.path.lexists(parent))
    if not there.is_dir():  # a file, or a link that leads nowhere
        return folder(path)
    if not os.access(there, os.W_OK | os.X_OK):
        raise ConfigError(f"folder {there} cannot be written in; give another --out")
    return path


def sync_folder(path: Path) -> None:
    """Make a renaming durable if the system can (not on Windows)."""
    if os.name == "posix":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
