"""`KEY=VALUE` words: one reader, one message, whatever the option."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from byzmesh.cli.peers import parse_attack
from byzmesh.config.overrides import override
from byzmesh.config.yaml import parse_settings
from byzmesh.errors import ConfigError
from byzmesh.store import open_store
from tests.cli.commands import run

CONFIG = "network: {name: ring, n: 5}\nproblem: quadratic\nrounds: 1\n"


def test_a_number_without_a_dot_is_a_number_everywhere() -> None:
    assert parse_settings("--where", ["step.a=1e-1"]) == {"step.a": 0.1}
    assert override({"rule": "cc"}, ["rule.tau=1e-1"]) == {"rule": {"name": "cc", "tau": 0.1}}
    assert parse_attack("gaussian:std=1e1") == {"name": "gaussian", "std": 10.0}
    words = ("ring", "--param", "n=5", "--rule", "cc", "--option", "tau=1e-1", "--f", "1", "--search", "0", "--json")
    assert json.loads(run("certify", *words).stdout)["rule"]


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--set", ("show", "run.yaml", "--set", "rounds")),
        ("--where", ("runs", "list", "--store", "runs.db", "--where", "rounds")),
        ("--where", ("table", "--store", "runs.db", "--where", "rounds")),
        ("--param", ("certify", "ring", "--param", "rounds")),
        ("--option", ("certify", "ring", "--param", "n=5", "--option", "rounds")),
        ("--attack", ("peers", "launch", "network.yaml", "--local", "--attack", "gaussian:rounds")),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, words: tuple[str, ...]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.yaml").write_text(CONFIG)
    open_store("runs.db").close()
    with pytest.raises(ConfigError) as stopped:
        run(*words)
    assert str(stopped.value) == f"{option} takes KEY=VALUE, got 'rounds'; write it as rounds=VALUE"


def test_what_is_no_value_is_named() -> None:
    with pytest.raises(ConfigError, match=r"--set rule: '\[cc' is not a value"):
        parse_settings("--set", ["rule=[cc"])
