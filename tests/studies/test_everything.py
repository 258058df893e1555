"""No certificate of a named network ends in an exception; the whole is in reports/soundness."""

from __future__ import annotations

from byzmesh.rules.base import rules
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
