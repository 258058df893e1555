"""`scripts/test` says what it needs before it installs anything, and does not try to install without root."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"


@pytest.mark.parametrize("present", [(), ("chromium", "ip"), ("google-chrome",)])
def test_missing_packages_are_named_and_not_installed_without_root(tmp_path: Path, present: tuple[str, ...]) -> None:
    shutil.copytree(SCRIPTS, tmp_path / "scripts")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "dirname", "cat", "sha256sum"):
        (tools / name).symlink_to(shutil.which(name) or name)
    for name, text in {"id": "echo 1000", "apt-get": "echo installed >&2", **dict.fromkeys(present, "true")}.items():
        (tools / name).write_text(f"#!{tools}/bash\n{text}\n")
        (tools / name).chmod(0o755)
    missing = [] if present else ["chromium"]
    missing += [] if "ip" in present else ["iproute2"]
    missing += [] if os.path.isdir("/usr/share/datasets/fashion-mnist") else ["dataset-fashion-mnist"]
    told = subprocess.run(
        [tools / "bash", tmp_path / "scripts" / "test"],
        env={"PATH": str(tools), "PYTHON": "false"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert told.returncode != 0 and "installed" not in told.stderr
    words = " ".join(missing) or "none"
    assert told.stdout == f"system packages needed: chromium iproute2 dataset-fashion-mnist (missing: {words})\n"
    assert told.stderr.startswith("scripts/test: only root can install them") == bool(missing)
