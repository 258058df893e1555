"""The import arrows between the rooms: who may import whom. Every module is in a room or on the floor."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import byzmesh

ROOT = Path(byzmesh.__file__).parent
FLOOR = {
    "_version",
    "checks",
    "compiled",
    "curves",
    "entries",
    "errors",
    "files",
    "heaviest",
    "naming",
    "plugins",
    "progress",
    "records",
    "registry",
    "renamed",
    "rng",
    "round",
    "simd",
    "simd_halves",
    "simd_networks",
    "simd_sums",
    "simd_tiles",
    "source",
    "sparse",
    "sums",
    "types",
}
GROUND = {"networks", "rules", "attacks", "problems", "channels"}
SIMULATION = GROUND | {"theory", "training"}
CONFIG = SIMULATION | {"simulation"}
SWEEPS = CONFIG | {"config", "store"}
STUDIES = SWEEPS | {"sweeps", "reports"}
MAY_IMPORT: dict[str, set[str]] = {
    "networks": set(),
    "rules": set(),
    "attacks": set(),
    "problems": set(),
    "channels": set(),
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
    "integrations": {"rules"},
    "catalogue": SIMULATION | {"peers"},
    "doors": SIMULATION | {"peers"},
    "watch": STUDIES | {"peers"},
    "cli": STUDIES | {"watch", "studies", "peers", "catalogue"},
    "__init__": STUDIES | {"studies", "catalogue", "doors", "torch"},
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


def name_of(path: Path) -> str:
    """The dotted name of a module."""
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(path) for path in modules()}


def running(tree: ast.AST) -> Iterator[ast.AST]:
    """Every syntax node, inside functions too, except under TYPE_CHECKING."""
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield node
            yield from running(node)


def imported_modules(source: str) -> set[str]:
    """Modules of byzmesh that a source text imports, at the top or inside functions."""
    names: set[str] = set()
    for node in running(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            below = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= below & MODULES or {node.module}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names & MODULES


def test_no_cycles() -> None:
    """No module imports itself indirectly; imports inside functions count."""
    graph = {name_of(path): imported_modules(path.read_text()) - {name_of(path)} for path in modules()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"these import each other: {' -> '.join(error.args[1])}")


def test_an_import_inside_a_function_counts() -> None:
    late = "def save() -> None:\n    from byzmesh.simulation.saving import save\n"
    typed = "if TYPE_CHECKING:\n    from byzmesh.simulation.engine import Simulation\n"
    assert imported_modules(late + typed) == {"byzmesh.simulation.saving"}
    assert imported_modules("from byzmesh.rules import base, Rule") == {"byzmesh.rules.base"}


def test_no_room_is_empty() -> None:
    assert {room_of(path) for path in modules()} == KNOWN


def test_only_one_door_to_numba() -> None:
    for path in modules():
        text = path.read_text()
        if "import numba" in text or "from numba" in text:
            assert path.name in (
                "compiled.py",
                "simd.py",
                "simd_halves.py",
                "simd_networks.py",
                "simd_sums.py",
                "simd_tiles.py",
            ), path


def test_rules_do_not_read_the_truth() -> None:
    """No rule mentions the set of liars."""
    for path in (ROOT / "rules").rglob("*.py"):
        assert "byzantine" not in path.read_text().replace("Byzantine", ""), path
