"""Certificates: verdicts, words, machine-readable form."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import byzmesh as bm
from byzmesh.errors import ConfigError
from byzmesh.networks import Network, network
from byzmesh.theory.certify import certify
from tests.cli.commands import app

KEYS = {"lambda", "rho_star", "h", "h_max", "rho_bound", "chi2", "verdicts", "answer", "conditions", "workers"}


@pytest.mark.parametrize("name", ["paper/two-castle", "paper/er-12", "paper/octopus"])
def test_published_graphs_are_rdsa_and_not_shown_to_be_rca(name: str) -> None:
    told = certify(network(name), "ios", search=0)
    assert (told.rdsa.status, told.rca.status) == ("proved", "unknown")
    assert told.holds == (name != "paper/er-12")  # there h = 1/4, and 5/3 honest spreads are possible
    asked = certify(network(name), "ios", guarantee="rca", search=0)
    assert (asked.holds, asked.exit_code) == (False, 3)


def test_ios_on_two_castle_is_refuted_by_a_witness() -> None:
    told = certify(network("paper/two-castle"), "ios", search=2000)
    assert told.rca.status == "refuted"
    assert "whatever W" in told.rca.reason
    assert told.search is not None
    assert told.search.witness is not None
    assert told.rho_star is not None
    assert told.rho_star <= told.search.rho <= (told.rho_bound or 0.0)
    assert told.search.witness.verify() == told.search.rho


def test_python_and_the_command_line_search_alike() -> None:
    """Without a word about the search both refute RCA by the same witness; a rule that cannot be searched is not."""
    told = bm.certify(network("paper/two-castle"), "ios")
    shown = CliRunner().invoke(app, ["certify", "paper/two-castle", "--rule", "ios", "--json"])
    assert told.rca.status == "refuted"
    assert json.loads(shown.stdout) == told.to_dict()
    assert certify(network("paper/two-castle"), "ubar").search is None


@pytest.mark.parametrize("name", ["krum", "coomed", "geomed"])
def test_medians_are_neither(name: str) -> None:
    told = certify(network("paper/two-castle"), name, search=1000)
    assert (told.rdsa.status, told.rca.status) == ("refuted", "refuted")
    assert told.chi2 == pytest.approx(0.001975, abs=1e-6)


def test_example_1_is_rca() -> None:
    told = certify(network("paper/two-castle-3"), "ios", 0, guarantee="agrees")
    assert told.holds and told.fair and told.rca
    assert told.rho_bound == 0.0


def test_weimean_and_scc_have_no_constant() -> None:
    for name in ("weimean", "scc"):
        told = certify(network("paper/two-castle"), name)
        assert (told.rdsa.status, told.rca.status) == ("refuted", "refuted")
        assert told.doubly_stochastic
        assert told.to_dict()["rho_bound"] is None
        assert told.to_dict()["rho_unbounded"] is True


def test_faba_on_a_complete_graph_is_rdsa() -> None:
    told = certify(network("complete", n=10, byzantine=[0, 1]), "faba")
    assert (told.rdsa.status, told.mixing.form) == ("proved", "equal")
    assert certify(network("paper/two-castle"), "faba").rdsa.status == "refuted"
    assert certify(network("complete", n=10, byzantine=[0, 1]), "trimean").rdsa.status == "unknown"


def test_a_rule_without_theory_is_unknown() -> None:
    assert certify(network("complete", n=10, byzantine=[0]), "mda").rdsa.status == "unknown"
    assert certify(network("paper/octopus"), "mda").rdsa.status == "unknown"


def test_disconnected_honest_workers() -> None:
    net = network("dumbbell", k=4, bridge=1, byzantine=[4])
    told = certify(net, "ios")
    assert not told.honest_connected
    assert told.rate == 0.0
    assert told.rca.status == "refuted"
    assert (told.bounded.status, told.fair.status, told.agrees.status) == ("unknown", "refuted", "refuted")
    assert "do not reach each other" in str(told)


def test_a_number_f_means_that_liars_may_be_anywhere() -> None:
    told = certify(network("two-castle", k=6), "ios", 2)
    assert told.question.anywhere
    assert [worker.worker for worker in told.workers] == list(range(12))
    assert "12 nodes, any of which may lie, at most 2 in the neighbourhood of a worker." in str(told)
    assert not certify(network("paper/two-castle"), "ios", 2).question.anywhere
    total = certify(network("two-castle", k=6), "ios", total=2)
    assert "at most 2 in the neighbourhood of a worker, at most 2 in all" in str(total)


def test_plain_words_first() -> None:
    lines = str(certify(network("paper/two-castle"), "ios", 4)).splitlines()
    assert lines[0] == "IOS on paper/two-castle: 10 honest workers, 2 lying (7, 9)."
    expected = (
        "Workers 0-6, 8, 10, 11 can tolerate 2 liars, not 4: "
        "lies could then weigh 0.364, and only rho <= 4.76 is proved."
    )
    assert expected in lines


def test_a_star_cannot_be_run() -> None:
    told = certify(network("star", n=5), "ios", 1)
    assert told.rdsa.status == "refuted"
    assert "cannot run at worker 1: f = 1 with 1 neighbours" in told.rdsa.reason


@pytest.mark.parametrize("rule", ["ios", "krum", "weimean", "nocomm", "cc", "scc", "faba", "bucketing", "drsa"])
def test_json(rule: str) -> None:
    told = certify(network("paper/er-12"), rule, search=300).to_dict()
    assert set(told) >= KEYS
    again = json.loads(json.dumps(told, allow_nan=False))
    assert again == told
    assert told["answer"] in ("holds", "does not hold", "unknown")
    assert len(told["workers"]) == len(told["h"]) == 10
    assert told["h_max"] == max(told["h"])


def test_the_theorems_in_numbers() -> None:
    told = certify(network("complete", n=8), "ios", 0, L=1.0, delta_in=1.0, delta_out=1.0, rounds=100, gap=1.0)
    assert told.promise is not None
    assert told.promise.omega == pytest.approx(1.0)
    assert told.promise.disagreement == pytest.approx(0.0)
    assert "Theorem 2" in str(told)
    with pytest.raises(ConfigError, match="give delta_in, delta_out too"):
        certify(network("complete", n=8), "ios", 0, L=1.0)


def test_mistakes() -> None:
    with pytest.raises(
        ConfigError, match="guarantee must be bounded, fair, agrees, connected, rdsa or rca, got 'rdas'"
    ):
        certify(network("complete", n=8), guarantee="rdas")
    with pytest.raises(ConfigError, match="f must be"):
        certify(network("paper/two-castle"), f="exactly")


def test_a_thousand_workers() -> None:
    links = np.triu(np.random.default_rng(0).random((1000, 1000)) < 0.1, 1)
    told = certify(Network.from_adjacency(links | links.T, byzantine=range(5)), "ios")
    assert told.honest_connected
    assert told.rdsa.status == "proved"
    assert len(told.workers) == 995


def test_rounding_is_no_contradiction() -> None:
    """On the octopus graph workers without a lying neighbour have rho = 0, and the search finds 2.5e-8 there."""
    told = certify(network("paper/octopus"))
    assert told.search is not None and told.rdsa.status == "proved"


def test_agreement_is_searched_and_proved() -> None:
    told = certify(network("complete", n=24, byzantine=[0]), "gts", guarantee="agrees", search=200)
    assert told.holds and told.agreement is not None and told.factor_bound is not None
    assert 0.0 < told.agreement.factor <= told.factor_bound < 1.0
    assert told.agreement.over_rounds <= told.factor_bound + 1e-9
    assert "H per exchange times [" in str(told)
    medians = certify(network("paper/two-castle-3"), "coomed", 0, search=300)
    assert medians.agreement is not None and medians.factor_bound is None
    assert medians.agreement.over_rounds == pytest.approx(1.0)  # two camps that never meet
    assert medians.agrees.status == "refuted"
