"""Every verb has help with an example, and `--help` loads nothing heavy."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path

import pytest

from byzmesh import cli
from byzmesh.cli import look_for_garbage_later, verbs
from tests.cli.commands import run
from tests.processes import command

COMMANDS = [
    [name, *rest]
    for name, module in verbs().items()
    for rest in ([[command.name or command.callback.__name__] for command in module.app.registered_commands]
                 if hasattr(module, "app") else [[]])
]  # fmt: skip
HEAVY = ("numba", "scipy", "matplotlib", "networkx", "torch", "byzmesh.simulation.engine", "byzmesh.sweeps")


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_has_an_example(words: list[str]) -> None:
    shown = " ".join(run(*words, "--help").stdout.replace("│", " ").split())
    assert f"Example: byzmesh {' '.join(words)}" in shown


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("run x.yaml --rounds 5", "has no option --rounds, a key of configs: write --set rounds=VALUE"),
        ("rum x", "No such command 'rum'. Did you mean 'run'?"),
        ("runs lst", "'lst'"),
        ("export 3fa8", "--to"),
        ("certify ring --f", "--f"),
        ("watch --port abc", "--port"),
        ("watch --store runs.db", "there is no store at"),
    ],
)
def test_a_mistake_in_the_words_is_one_line(words: str, told: str, tmp_path: Path) -> None:
    done = command(*words.split(), cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1 and told in done.stderr
    assert done.stderr.count("Did you mean") < 2


def test_verbs_keep_their_order_and_have_one_each() -> None:
    order = [module.ORDER for module in verbs().values()]
    assert order == sorted(set(order))
    assert list(verbs())[:2] == ["run", "show"] and {"runs", "peers"} < set(verbs())


def test_only_the_named_verb_is_loaded() -> None:
    assert list(verbs("run")) == ["run"] and list(verbs("--help")) == list(verbs("rnu")) == list(verbs())
    assert len(cli.commands("certify").registered_commands) == 1


def test_a_new_verb_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hello.py").write_text('ORDER = 15\n\n\ndef command() -> None:\n    """Say hello."""\n')
    (tmp_path / "_helper.py").write_text("")
    monkeypatch.setattr("byzmesh.cli.__path__", [*cli.__path__, str(tmp_path)])
    found = list(verbs())
    monkeypatch.delitem(sys.modules, "byzmesh.cli.hello")
    assert found[:3] == ["run", "hello", "show"] and "_helper" not in found


@pytest.mark.parametrize("words", [["--help"], ["runs", "list"]], ids=" ".join)
def test_nothing_heavy_is_loaded(words: list[str], filled: Path) -> None:
    code = (
        "import json, sys\nfrom byzmesh.cli import main\ntry:\n    main()\n"
        "except SystemExit:\n    json.dump(sorted(sys.modules), sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True, cwd=filled)
    assert "IOS" in done.stdout or "Usage" in done.stdout
    assert set(HEAVY) & set(json.loads(done.stderr)) == set()


def test_garbage_is_collected_as_usual_after_the_imports() -> None:
    gc.collect()  # a command that another test ran in this process may still wait for it
    former, callbacks = gc.get_threshold(), list(gc.callbacks)
    usual = (700, 10, 10)
    gc.set_threshold(*usual)
    try:
        look_for_garbage_later()
        look_for_garbage_later()
        assert gc.get_threshold()[0] > usual[0]
        gc.collect()
        assert (gc.get_threshold(), gc.callbacks) == (usual, callbacks)
    finally:
        gc.set_threshold(*former)
