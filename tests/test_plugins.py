"""Plugins: found, loaded once, loaded again when they change; errors are one line."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from byzmesh import plugins
from byzmesh.errors import ConfigError
from byzmesh.plugins import load_plugins, load_texts, texts_of


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(plugins, "_texts", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    # Whatever this process has loaded as a plugin before steps aside, so that "mine" is free.
    for name in [name for name in sys.modules if name.startswith("byzmesh_plugin_")]:
        monkeypatch.delitem(sys.modules, name)
    modules = set(sys.modules)
    yield
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def module(stem: str = "mine") -> object:
    return sys.modules[f"byzmesh_plugin_{stem}"]


def test_a_script_is_loaded_once_and_again_when_it_changed(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text("here = object()")
    assert load_plugins(["mine.py"], tmp_path) == [str(script)]
    first = module()
    assert load_plugins([str(script)]) == [str(script)] and module() is first
    script.write_text("here = 'changed'")
    load_plugins([str(script)])
    assert vars(module())["here"] == "changed"


def test_a_script_imports_its_neighbours_and_two_scripts_may_share_a_name(tmp_path: Path) -> None:
    for folder, value in (("one", 1), ("two", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(f"from helper_{folder} import value")
        (tmp_path / folder / f"helper_{folder}.py").write_text(f"value = {value}")
    load_plugins(["one/mine.py", "two/mine.py"], tmp_path)
    assert (vars(module())["value"], vars(module("mine_"))["value"]) == (1, 2)


def test_modules_by_their_dotted_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "rules_of_the_lab.py").write_text("value = 3")
    assert load_plugins(["lab.rules_of_the_lab"], tmp_path) == [str(tmp_path / "lab" / "rules_of_the_lab.py")]
    monkeypatch.syspath_prepend(str(tmp_path))
    assert load_plugins(["lab.rules_of_the_lab"]) == ["lab.rules_of_the_lab"], "installed: known by its name"
    assert texts_of(["lab.rules_of_the_lab"]) == {}


def test_a_scripts_text_replaces_a_missing_file(tmp_path: Path) -> None:
    path = str(tmp_path / "elsewhere.py")
    load_texts({path: "def answer():\n    return 42\n"})
    assert load_plugins([path]) == [path] and texts_of([path])[path].startswith("def answer")
    answer = vars(module("elsewhere"))["answer"]
    assert answer() == 42 and inspect.getsource(answer) == "def answer():\n    return 42\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import byzmesh\n\nbyzmesh.no_such_thing\n", "{}, line 3: AttributeError: module 'byzmesh' has no attribute"),
        ("def broken(:\n    pass\n", "{}, line 1: SyntaxError: "),
        ("import sys\nsys.exit(3)\n", "{}, line 2: SystemExit: 3"),
        ("x = 1\nimport not_a_module\n", "{}, line 2: ModuleNotFoundError: No module named 'not_a_module'"),
        ("raise ValueError('two\\nlines')", "{}, line 1: ValueError: two lines"),
    ],
    ids=["name", "syntax", "exit", "import", "lines"],
)
def test_an_error_on_import_is_one_line_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    script = tmp_path / "bad.py"
    script.write_text(text)
    with pytest.raises(ConfigError) as stopped:
        load_plugins(["bad.py"], tmp_path)
    assert str(stopped.value).startswith(f"plugin {message.format(script)}") and "\n" not in str(stopped.value)
    assert "byzmesh_plugin_bad" not in sys.modules


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"plugin .*none\.py: No such file or directory; give the path"):
        load_plugins(["none.py"], tmp_path)
    with pytest.raises(ConfigError, match=r"plugin nowhere\.rules: there is no module 'nowhere'; install it"):
        load_plugins(["nowhere.rules"], tmp_path)
    with pytest.raises(ConfigError, match="a plugin must be the path of a script"):
        load_plugins([3], tmp_path)  # type: ignore[list-item]
