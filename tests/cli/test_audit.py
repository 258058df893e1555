"""`byzmesh audit` as a user meets it: exit codes, JSON, the files, and the config that repeats the worst case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import byzmesh as bm
from byzmesh.studies.audit.report import slug
from tests.processes import command as byzmesh

BUDGET = ("--runs", 2, "--seeds", 2, "--finals", 1, "--start", "zero", "--workers", 0)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A config in the current folder, which is where the store and the report go. Its loss is near 1."""
    monkeypatch.chdir(tmp_path)
    content: dict[str, Any] = {
        "problem": {"name": "noisy-quadratic", "dimension": 2},
        "network": "paper/two-castle",
        "attack": "sign-flipping",
        "rounds": 20,
    }
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def test_the_worst_case_is_told_written_and_repeated_in_one_command(config: Path) -> None:
    """A config without a rule is audited with the recommended one."""
    done = byzmesh("audit", config, *BUDGET, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    (rule,) = told["rules"]
    assert rule["rule"] == bm.rule(bm.RECOMMENDED_RULE).name and told["holds"] and not told["failures"]
    (worst,) = rule["cases"]
    assert worst["final"] and len(worst["values"]) == 2 and worst["rounds"] == 20
    repeat = f"worst-{slug(rule['rule'])}.yaml"
    for name in ("audit.json", "audit.md", "audit.html", repeat):
        assert Path("audit", name).exists() and name in done.stderr
    assert json.loads(Path("audit", "audit.json").read_text()) == told
    again = byzmesh("run", f"audit/{repeat}", "--store", "again.db", "--json")
    assert again.returncode == 0, again.stderr
    ran = json.loads(again.stdout)
    assert ran["computed"] and ran["metrics"]["loss"][-1] == pytest.approx(worst["values"][0], rel=1e-6)


@pytest.mark.parametrize(("most", "expected"), [(1e9, 0), (1e-9, 1)])
def test_at_least_is_a_gate(most: float, expected: int, config: Path) -> None:
    """For a loss: at most. The table is printed either way."""
    done = byzmesh("audit", config, *BUDGET, "--rule", "weimean", "--at-least", most)
    assert done.returncode == expected, done.stderr
    assert "WeiMean" in done.stdout and "Worst loss found, 20 rounds" in done.stdout
    assert "What is unavoidable" in done.stdout and "classifier" not in done.stdout


@pytest.mark.parametrize("enough", [False, True])
def test_a_gate_that_an_unfinished_search_does_not_pass_says_why(enough: bool, config: Path) -> None:
    budget = ("--runs", 10, "--seeds", 1, "--finals", 1, "--start", "zero", "--workers", 0)
    limit = () if enough else ("--total-rounds", 100)
    done = byzmesh("audit", config, *budget, *limit, "--at-least", 1e9)
    assert (done.returncode == 0) == enough, done.stderr
    assert ("the search is not complete: give it more time" in done.stderr) != enough


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--start", "nil"), "a start of an audit must be zero, common or normal, got 'nil'"),
        (("--set", "b=1.5"), "b must be a weight of at least 0 and below 1"),
        (("--rule", "trimean", "--set", "network={name: ring, n: 5, byzantine: [4]}", "--set", "f=1"), "is infeasible"),
        (("--set", "attack=sine-flipping"), "did you mean 'sign-flipping'?"),
        (("--at-least", "nan"), "at_least must be a finite number, got nan"),
        (("--out", "mine.yaml/audit"), "cannot be created"),
        (("--set", "network={name: ring, n: 5}"), "nobody lies here"),
    ],
    ids=["start", "b", "infeasible", "attack", "nan", "out", "no liars"],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments: tuple[str, ...], said: str, config: Path) -> None:
    done = byzmesh("audit", config, "--runs", 2, "--workers", 0, *arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert said in line and not Path("audit").exists() and not Path("runs.db").exists()


def test_that_all_runs_failed_is_no_success(config: Path) -> None:
    Path("broken.py").write_text(
        "import byzmesh as bm\n\n\n"
        '@bm.register_rule("broken")\n'
        "def broken() -> bm.Rule:\n"
        '    """Raises."""\n\n'
        "    def apply(inbox, state):\n"
        '        raise RuntimeError("out of order")\n\n'
        '    return bm.Rule("broken", apply)\n'
    )
    done = byzmesh("audit", config, *BUDGET, "--plugin", "broken.py", "--rule", "broken")
    assert done.returncode == 1, done.stderr
    page = Path("audit", "audit.html").read_text()
    assert "broken: all 2 runs failed: " in page and "out of order" in page and "minutes" not in page
