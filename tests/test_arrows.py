"""The import arrows between the rooms: who may import whom."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import byzmesh

ROOT = Path(byzmesh.__file__).parent
FLOOR = {"errors", "registry", "rng", "compiled", "_version"}
BELOW_EXPERIMENTS = {"simulation", "network", "rules", "attacks", "problems", "training", "theory", "store"}
MAY_IMPORT = {
    "network": set(),
    "rules": set(),
    "attacks": set(),
    "problems": set(),
    "theory": {"network", "rules"},
    "training": {"network", "problems"},
    "simulation": {"network", "rules", "attacks", "problems", "training"},
    "store": set(),
    "torch": {"rules", "problems"},
    "experiments": BELOW_EXPERIMENTS | {"reports", "torch"},
    "reports": {"store", "network"},
    "peers": {"network", "rules", "attacks", "problems", "training", "store"},
}


def imported_rooms(path: Path) -> set[str]:
    """Rooms and floor modules of byzmesh that a file imports, inside functions too."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module] if node.module != "byzmesh" else [f"byzmesh.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("byzmesh.")}
    return rooms


@pytest.mark.parametrize("room", sorted(MAY_IMPORT))
def test_arrows(room: str) -> None:
    files = sorted((ROOT / room).rglob("*.py")) or [ROOT / f"{room}.py"]
    for path in files:
        extra = imported_rooms(path) - FLOOR - {room} - MAY_IMPORT[room]
        assert not extra, f"{path.relative_to(ROOT)} imports {sorted(extra)}"


@pytest.mark.parametrize("module", sorted(FLOOR - {"_version"}))
def test_the_floor_imports_nothing_above(module: str) -> None:
    assert imported_rooms(ROOT / f"{module}.py") <= FLOOR


def test_only_one_door_to_numba() -> None:
    for path in ROOT.rglob("*.py"):
        text = path.read_text()
        if "import numba" in text or "from numba" in text:
            assert path.name in ("compiled.py", "simd.py"), path


def test_rules_do_not_read_the_truth() -> None:
    """No rule mentions the set of liars."""
    for path in (ROOT / "rules").glob("*.py"):
        assert "byzantine" not in path.read_text().replace("Byzantine", ""), path
