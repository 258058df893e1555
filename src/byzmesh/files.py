"""Files that are whole or not there: one way to write, whatever crashes in between."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from byzmesh.errors import ConfigError


@contextmanager
def replacing(path: str | Path, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """A binary file that takes the place of `path` when the block ends well; otherwise `path` stays as it was.

    durable  wait until the content is on disk, so that a power failure leaves the old file or the new one

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder, "note")
    ...     with replacing(target) as file:
    ...         _ = file.write(b"whole")
    ...     target.read_bytes(), [found.name for found in Path(folder).iterdir()]
    (b'whole', ['note'])
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(6)}")
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
        _sync_folder(path.parent)


def write(path: str | Path, content: str | bytes, *, option: str = "--out", durable: bool = False) -> Path:
    """Write a file whole; `ConfigError` that names the `option` to change if that cannot be done."""
    path = Path(path)
    try:
        with replacing(path, durable=durable) as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written ({error.strerror or error}); give another {option}") from None
    return path


def folder(path: str | Path, *, option: str = "--out") -> Path:
    """The folder, made if it is not there; `ConfigError` that names the `option` to change if that cannot be done."""
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"folder {path} cannot be made ({error.strerror}); give another {option}") from None
    return path


def save_figure(figure: Any, path: str | Path) -> Path:
    """Write a matplotlib figure in the format of the path's ending; the same data give the same file."""
    import matplotlib

    path = Path(path)
    # Without these the file would hold the date and random ids.
    undated: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    try:
        with matplotlib.rc_context({"svg.hashsalt": "byzmesh"}):
            figure.savefig(path, dpi=150, metadata=undated.get(path.suffix.lower()))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror})") from None
    return path


def _sync_folder(path: Path) -> None:
    """Make the renaming itself durable where the system can (not on Windows)."""
    if os.name == "posix":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
