"""No certificate of a named network ends in an exception; the whole is in reports/soundness."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from byzmesh.networks import Network, network
from byzmesh.rules.base import rules
from byzmesh.studies import everything
from byzmesh.studies.everything import certify_everything, named_networks


def test_a_sample_of_every_family_and_rule() -> None:
    rules.load()
    names = rules.names()
    total = 0
    for number, net in enumerate(named_networks(sizes=(5, 12))):
        told = certify_everything([net], names[number % 13 :: 13], search=5)
        assert told["failed"] == []
        total += told["certificates"]
    assert total > 80


def test_the_study_continues_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    networks = [network("complete", n=5, byzantine=[0]), network("ring", n=5), network("star", n=5)]
    monkeypatch.setattr(everything, "named_networks", lambda: networks)
    monkeypatch.setattr(rules, "names", lambda: ["IOS", "WeiMean"])
    seen: list[str] = []
    certify_some = everything.certify_everything

    def watched(nets: list[Network], names: list[str]) -> dict[str, Any]:
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(nets[0].name)
        return certify_some(nets, names, search=5)

    monkeypatch.setattr(everything, "certify_everything", watched)
    file = tmp_path / "everything.json"
    with pytest.raises(KeyboardInterrupt):
        everything.main([str(file), "abc"])
    seen.clear()
    assert everything.main([str(file), "abc"]) == 0
    assert seen == ["star"]
    told = json.loads(file.read_text())
    assert (told["certificates"], sum(told["answers"].values()), told["failed"]) == (6, 6, [])
