"""Folders that are asked for now and made later."""

from __future__ import annotations

from pathlib import Path

import pytest

from byzmesh.errors import ConfigError
from byzmesh.files import folder_later


@pytest.mark.parametrize("asked", ["file", "file/x", "link", "link/x", "a" * 300])
def test_a_folder_that_cannot_be_made_is_refused_before_it_is_needed(
    asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    Path("link").symlink_to("nowhere/deep")
    with pytest.raises(ConfigError, match="cannot be created"):
        folder_later(asked)
    assert {path.name for path in tmp_path.iterdir()} == {"file", "link"}


def test_a_folder_that_can_be_made_is_not_made_yet(tmp_path: Path) -> None:
    assert folder_later(tmp_path) == tmp_path
    assert folder_later(tmp_path / "new" / "deep") == tmp_path / "new" / "deep" and not any(tmp_path.iterdir())
