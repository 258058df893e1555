"""Where a result came from: versions, revision, machine."""

from __future__ import annotations

import functools
import platform
import socket
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from byzmesh._version import __version__

PACKAGES = ("numpy", "scipy", "numba", "networkx", "torch")
"""Packages whose version can change a run's numbers."""


def provenance() -> dict[str, Any]:
    """Everything needed to trust or repeat a run: byzmesh's version and git revision, Python, packages, platform, host.

    `revision` is None unless byzmesh runs from a git checkout; it ends in `-dirty` if tracked files were changed.

    >>> sorted(provenance())
    ['host', 'packages', 'platform', 'processor', 'python', 'revision', 'version']
    """
    return {**_gathered(), "packages": dict(_gathered()["packages"])}


@functools.cache
def _gathered() -> dict[str, Any]:
    return {
        "version": __version__,
        "revision": _revision(Path(__file__)),
        "python": platform.python_version(),
        "packages": {name: version for name in PACKAGES if (version := _installed(name)) is not None},
        "platform": platform.platform(),
        "processor": platform.machine(),
        "host": socket.gethostname(),
    }


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _revision(file: Path) -> str | None:
    # The file must be tracked: an installed byzmesh may be inside the checkout of another project.
    if _git(file, "ls-files", "--error-unmatch", file.name) is None:
        return None
    return _git(file, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def _git(file: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=file.parent, capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
