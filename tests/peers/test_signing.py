"""Signed network files: nothing that the operator did not sign, byte for byte, is believed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from byzmesh.errors import ByzmeshError, ConfigError, PeerError
from byzmesh.peers import network_file
from byzmesh.peers.changes import changed, sign_file
from byzmesh.peers.network_file import NetworkFile, load_network, save_network, signed_network
from byzmesh.peers.signing import LARGEST_FILE, NotSigned, load_operator, new_operator, sign, verify
from tests.peers import members


@pytest.fixture
def file(tmp_path: Path) -> NetworkFile:
    return members.signed_network(tmp_path, 4)


def test_every_changed_byte_is_found(file: NetworkFile) -> None:
    verify(file.text, file.operator)
    for place in range(0, len(file.text), 7):
        forged = bytearray(file.text)
        forged[place] ^= 1
        with pytest.raises(NotSigned):
            verify(bytes(forged), file.operator)


@pytest.mark.parametrize(
    "forge",
    [
        lambda text: text + b"f: 0\n",
        lambda text: text + b"\n",
        lambda text: b"\n" + text,
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: text[: text.rindex(b"signature")],
        lambda text: text[: text.rindex(b"signature")] + text,
        lambda text: text + text[text.rindex(b"signature") :],
        lambda text: text.upper(),
        lambda text: b"",
        lambda text: text[-140:],
        lambda text: text + b"#" * LARGEST_FILE,
    ],
)
def test_forged_texts_are_refused_before_they_are_parsed(
    file: NetworkFile, tmp_path: Path, forge: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(forge)
    with monkeypatch.context() as patch:
        patch.setattr(network_file, "parse_yaml", lambda *_, **__: pytest.fail("parsed"))
        with pytest.raises(NotSigned):
            signed_network(forge(file.text), file.operator, tmp_path)
    # a signature that is not checked would be found: most of these are files like any other
    monkeypatch.setattr(network_file, "verify", lambda text, operator: None)
    if forge(file.text).endswith(b"\n\n"):
        assert signed_network(forge(file.text), file.operator, tmp_path).epoch == 0


def test_another_operators_signature_does_not_count(file: NetworkFile, tmp_path: Path) -> None:
    new_operator(tmp_path / "other.key")
    again = sign(file.text, load_operator(tmp_path / "other.key"))
    with pytest.raises(NotSigned, match="somebody else signed it"):
        signed_network(again, file.operator, tmp_path)
    with pytest.raises(ConfigError, match="names the operator"):
        sign_file(tmp_path / "network.yaml", tmp_path / "other.key")


def test_a_file_that_names_an_operator_must_be_signed(file: NetworkFile, tmp_path: Path) -> None:
    path = tmp_path / "network.yaml"
    save_network(changed(file, 50), path)
    with pytest.raises(NotSigned, match="byzmesh peers sign"):
        load_network(path)
    with pytest.raises(ConfigError, match="give that with --after"):
        sign_file(path, tmp_path / "operator.key")
    content = file.model_dump(mode="json", exclude_unset=True, exclude={"operator", "signature"})
    with pytest.raises(ConfigError, match="need an operator"):
        network_file.network_file({**content, "epoch": 1})


def test_the_operator_is_told_what_peers_would_refuse(file: NetworkFile, tmp_path: Path) -> None:
    former = tmp_path / "network.yaml"
    content = file.model_dump(mode="json", exclude_unset=True, exclude={"signature"})
    peers = [dict(entry) for entry in content["peers"]]
    peers[2]["share"] = 0
    for change, message in (
        ({"epoch": 0}, "epoch must be above 0"),
        ({"rule": {"name": "CooMed"}}, "that is a new run"),
        ({"nonce": "other"}, "that is a new run"),
        ({"shares": 5}, "that is a new run"),
        ({"peers": peers}, "share of peer 2 must stay 2, got 0"),
        ({"from_round": 150}, "from_round must be below rounds = 150"),
    ):
        path = tmp_path / "next.yaml"
        path.write_text(yaml.safe_dump({**content, "epoch": 1, **change}))
        with pytest.raises(ConfigError, match=message):
            sign_file(path, tmp_path / "operator.key", former)


def test_nobody_is_left_without_neighbours(tmp_path: Path) -> None:
    """The hub of a star is removed: by the command, and by hand."""
    star = {"topology": None, "edges": [[0, 1], [0, 2], [0, 3], [3, 4]], "f": 0, "rule": "weimean"}
    file = members.signed_network(tmp_path, 5, **star)
    with pytest.raises(ConfigError, match=r"no neighbours are left for peer 1, 2, which would train alone; add links"):
        changed(file, 50, remove=[0])
    content = file.model_dump(mode="json", exclude_unset=True, exclude={"signature"})
    content |= {"epoch": 1, "edges": [[0, 1], [0, 2], [0, 3]]}
    (tmp_path / "next.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(ConfigError, match="no neighbours are left for peer 4"):
        sign_file(tmp_path / "next.yaml", tmp_path / "operator.key", tmp_path / "network.yaml")
    assert changed(file, 50, remove=[1, 4]).ids == [0, 2, 3]


def test_keys_are_kept_secret(tmp_path: Path) -> None:
    path = tmp_path / "operator.key"
    new_operator(path)
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(PeerError, match="already exists"):
        new_operator(path)
    os.chmod(path, 0o644)
    with pytest.raises(PeerError, match="chmod 600"):
        load_operator(path)
    path.write_text("nothing")
    os.chmod(path, 0o600)
    with pytest.raises(ByzmeshError, match="make one with byzmesh keygen --operator"):
        load_operator(path)


def test_too_large_a_file_is_not_signed(file: NetworkFile, tmp_path: Path) -> None:
    with pytest.raises(PeerError, match=f"at most {LARGEST_FILE} bytes"):
        sign(b"#" * LARGEST_FILE, load_operator(tmp_path / "operator.key"))
