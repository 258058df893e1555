"""Memory of mapped files is given back, and nothing that it held is lost."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path

import pytest

from byzmesh.peers.working_set import give_back_mapped_files

SIZE = 8 << 20


def resident(path: Path) -> int:
    """Bytes of a mapped file that are in memory."""
    held, here = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split(" ")[0]:
            here = line.endswith(str(path))
        elif here and line.startswith("Rss:"):
            held += 1024 * int(line.split()[1])
    return held


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux's memory")
def test_pages_of_files_go_and_come_back_and_changed_ones_stay(tmp_path: Path) -> None:
    path, changed = tmp_path / "data", tmp_path / "changed"
    path.write_bytes(bytes(range(256)) * (SIZE // 256))
    changed.write_bytes(bytes(SIZE))
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        changed.open("rb") as other,
        mmap.mmap(other.fileno(), 0, access=mmap.ACCESS_COPY) as private,
    ):
        private[: SIZE // 2] = b"x" * (SIZE // 2)
        assert len(set(mapped[:: mmap.PAGESIZE])) == 1 and resident(path) == SIZE
        assert give_back_mapped_files() >= SIZE
        assert resident(path) == 0
        assert mapped[:256] == bytes(range(256)) and mapped[-256:] == bytes(range(256))
        assert private[: SIZE // 2] == b"x" * (SIZE // 2)
