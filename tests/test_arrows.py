"""The import arrows between the rooms: who may import whom. Every module is in a room or on the floor."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import byzmesh

ROOT = Path(byzmesh.__file__).parent
FLOOR = {"_version", "errors", "types", "checks", "files", "naming", "plugins", "registry", "rng", "compiled"}
FLOOR |= {"round", "source"}
GROUND = {"networks", "rules", "attacks", "problems"}
SIMULATION = GROUND | {"theory", "training"}
CONFIG = SIMULATION | {"simulation"}
SWEEPS = CONFIG | {"config", "store"}
STUDIES = SWEEPS | {"sweeps", "reports"}
MAY_IMPORT: dict[str, set[str]] = {
    "networks": set(),
    "rules": set(),
    "attacks": set(),
    "problems": set(),
    "store": set(),
    "theory": GROUND,
    "training": GROUND,
    "reports": {"store", "networks", "training"},
    "simulation": SIMULATION,
    "config": CONFIG | {"store"},
    "sweeps": SWEEPS | {"torch"},
    "studies": STUDIES,
    "peers": SIMULATION | {"config", "store"},
    "torch": {"rules", "problems"},
    "catalogue": SIMULATION | {"peers"},
    "doors": SIMULATION | {"peers"},
    "cli": STUDIES | {"studies", "peers", "catalogue"},
    "__init__": STUDIES | {"catalogue", "doors", "torch"},
}


def modules() -> list[Path]:
    """Every Python file of the package."""
    return sorted(ROOT.rglob("*.py"))


def room_of(path: Path) -> str:
    """The room or floor module that a file belongs to."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    """Rooms and floor modules of byzmesh that a file imports, inside functions too, or names as a string to import."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module] if node.module != "byzmesh" else [f"byzmesh.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("byzmesh."):
            names.append(node.value)
    return {room for name in names if name.startswith("byzmesh.") and (room := name.split(".")[1]) in KNOWN}


KNOWN = FLOOR | set(MAY_IMPORT)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_arrows(path: Path) -> None:
    room = room_of(path)
    assert room in KNOWN, f"{room} is in no list above: say what it may import"
    allowed = FLOOR if room in FLOOR else FLOOR | {room} | MAY_IMPORT[room]
    extra = imported_rooms(path) - allowed
    assert not extra, f"{path.relative_to(ROOT)} imports {sorted(extra)}"


def test_no_room_is_empty() -> None:
    assert {room_of(path) for path in modules()} == KNOWN


def test_only_one_door_to_numba() -> None:
    for path in modules():
        text = path.read_text()
        if "import numba" in text or "from numba" in text:
            assert path.name in ("compiled.py", "simd.py"), path


def test_rules_do_not_read_the_truth() -> None:
    """No rule mentions the set of liars."""
    for path in (ROOT / "rules").rglob("*.py"):
        assert "byzantine" not in path.read_text().replace("Byzantine", ""), path
