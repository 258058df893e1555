"""Key files: private, never overwritten, never shown."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from byzmesh.errors import ConfigError, PeerError
from byzmesh.peers.identity import Keyring, is_key, keygen, load_keys, load_public, new_keys, one_more_key, save_keys


def test_keygen_makes_private_files(tmp_path: Path) -> None:
    before = os.umask(0o000)
    try:
        public = keygen(tmp_path / "keys", 3)
    finally:
        os.umask(before)
    for peer in range(3):
        path = tmp_path / "keys" / f"peer{peer}.key"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert load_keys(path).public == public[peer]
        assert load_keys(path).secret not in (tmp_path / "keys" / "public.yaml").read_text()
    assert load_public(tmp_path / "keys") == public
    assert len(set(public.values())) == 3


def test_secrets_are_not_shown() -> None:
    keys = new_keys()
    assert keys.secret not in repr(keys)


def test_an_identity_is_never_overwritten(tmp_path: Path) -> None:
    keygen(tmp_path, 1)
    before = (tmp_path / "peer0.key").read_text()
    with pytest.raises(PeerError, match="exists"):
        keygen(tmp_path, 1)
    assert (tmp_path / "peer0.key").read_text() == before


def test_files_that_others_can_read_are_refused(tmp_path: Path) -> None:
    path = save_keys(tmp_path / "a.key", new_keys())
    path.chmod(0o640)
    with pytest.raises(PeerError, match="chmod 600"):
        load_keys(path)


@pytest.mark.parametrize("change", ["", "public: x\nsecret: y\n", "halves"])
def test_damaged_key_files(tmp_path: Path, change: str) -> None:
    path = tmp_path / "a.key"
    if change == "halves":
        save_keys(path, new_keys())
        other = new_keys().public
        lines = path.read_text().splitlines()
        path.write_text("\n".join([lines[0], f"public: {other}", lines[2]]) + "\n")
    else:
        path.write_text(change)
        path.chmod(0o600)
    with pytest.raises(PeerError, match="key file"):
        load_keys(path)


def test_missing_key_file(tmp_path: Path) -> None:
    with pytest.raises(PeerError, match="keygen"):
        load_keys(tmp_path / "none.key")
    with pytest.raises(ConfigError, match="keygen"):
        load_public(tmp_path)


@pytest.mark.parametrize("text", ["", "a" * 65, "\x00" * 64, "A" * 64, "~" * 64])
def test_what_is_not_a_key(text: str) -> None:
    assert not is_key(text)


@pytest.mark.parametrize("named", ["peer0.key", "peer0.2.key", "peer0.3.key"])
def test_a_keyring_finds_all_keys_of_a_peer_whichever_is_named(tmp_path: Path, named: str) -> None:
    """peer0.3.key is not there yet; of other peers nothing is tried."""
    keygen(tmp_path, 2)
    old, new = load_keys(tmp_path / "peer0.key").public, one_more_key(tmp_path, 0)[1]
    ring = Keyring(tmp_path / named)
    assert ring.has(old) and ring.has(new) and not ring.has(load_public(tmp_path)[1])
    (tmp_path / "peer0.key").unlink()  # as the docs advise
    assert ring.find(new) == load_keys(tmp_path / "peer0.2.key") and ring.find(old) is None
    newest = one_more_key(tmp_path, 0)[1]
    assert ring.has(newest)


def test_a_key_file_that_cannot_be_used_stands_in_nobodys_way(tmp_path: Path) -> None:
    keygen(tmp_path, 1)
    new = one_more_key(tmp_path, 0)[1]
    ring, first = Keyring(tmp_path / "peer0.key"), load_keys(tmp_path / "peer0.key").public
    for mode, text in ((0o644, (tmp_path / "peer0.key").read_bytes()), (0o600, b"\xff")):
        (tmp_path / "peer0.key").write_bytes(text)
        (tmp_path / "peer0.key").chmod(mode)
        assert ring.has(new) and not ring.has(first)
        with pytest.raises(PeerError, match=r"peer0\.key"):
            ring.find(first)  # it may be that one
    with pytest.raises(PeerError, match=r"cannot read key file .*none\.key.*keygen"):
        Keyring(tmp_path / "none.key").find(first)
