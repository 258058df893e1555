"""User parts of many forms, each edited where an edit is easily missed: an edited part has another identity.

seen       what the part does is edited: runs must be computed again
not seen   words are edited, or what the part does not reach: runs stay
"""

from __future__ import annotations

import importlib
import itertools
import linecache
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from byzmesh.config.changes import changes
from byzmesh.config.identity import identity

NUMBER = itertools.count()
NAMES = ("mine_to_edit", "beside_to_edit", "package_to_edit", "package_to_edit.inner")


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in NAMES:
        sys.modules.pop(name, None)


def load(folder: Path, files: dict[str, str]) -> Any:
    """The module `mine_to_edit` of these files, imported anew; the folder stays the same, as it does for a user."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        stamp = 1_000_000_000 + next(NUMBER)  # or a compiled file of the same second might be taken for this one's
        os.utime(path, (stamp, stamp))
    for name in NAMES:
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    return importlib.import_module("mine_to_edit")


MINE, BESIDE, INNER = "mine_to_edit.py", "beside_to_edit.py", "package_to_edit/inner.py"
SEEN: dict[str, tuple[dict[str, str], str, str]] = {
    "function": ({MINE: "def part(x): return 2 * x"}, "2", "3"),
    "lambda": ({MINE: "part = lambda x: 2 * x"}, "2", "3"),
    "second lambda of a line": ({MINE: "other, part = (lambda x: x), (lambda x: 2 * x)"}, "2", "3"),
    "function that it calls": ({MINE: "def low(x): return 2 * x\ndef part(x): return low(x)"}, "2", "3"),
    "default": ({MINE: "def part(x, k=2): return k * x"}, "2", "3"),
    "keyword default": ({MINE: "def part(x, *, k=2): return k * x"}, "2", "3"),
    "default of an inner function": (
        {MINE: "def make(k):\n    def part(x, k=k): return k * x\n    return part\npart = make(2)"},
        "2",
        "3",
    ),
    "constant": ({MINE: "TAU = 2\ndef part(x): return TAU * x"}, "2", "3"),
    "constant of a constant": ({MINE: "LOW = 2\nTAU = LOW + 1\ndef part(x): return TAU * x"}, "2", "3"),
    "closure": ({MINE: "def make(k):\n    return lambda x: k * x\npart = make(2)"}, "(2)", "(3)"),
    "which of two captured is none": (
        {MINE: "def make(a, b):\n    return lambda x: (a, b)\npart = make(None, 2)"},
        "None, 2",
        "2, None",
    ),
    "captured library function": (
        {MINE: "import math\ndef make(g):\n    return lambda x: g(x)\npart = make(math.sin)"},
        "math.sin",
        "math.cos",
    ),
    "captured ufunc": (
        {MINE: "import numpy as np\ndef make(g):\n    return lambda x: g(x, x)\npart = make(np.add)"},
        "np.add",
        "np.multiply",
    ),
    "captured fraction": (
        {MINE: "from fractions import Fraction\ndef make(k):\n    return lambda x: k * x\npart = make(Fraction(1, 2))"},
        "1, 2",
        "1, 3",
    ),
    "captured deque": (
        {MINE: "from collections import deque\ndef make(k):\n    return lambda x: k\npart = make(deque([2]))"},
        "2",
        "3",
    ),
    "captured range": ({MINE: "def make(k):\n    return lambda x: k\npart = make(range(2))"}, "2", "3"),
    "captured array of objects": (
        {MINE: "import numpy as np\ndef make(k):\n    return lambda x: k\npart = make(np.array([2, 'a'], object))"},
        "2",
        "3",
    ),
    "partial": ({MINE: "import functools\ndef low(k, x): return k * x\npart = functools.partial(low, 2)"}, "2", "3"),
    "function of a partial": (
        {MINE: "import functools\ndef low(k, x): return 2 * k * x\npart = functools.partial(low, 1)"},
        "2",
        "3",
    ),
    "decorator": (
        {MINE: "def twice(g):\n    return lambda x: 2 * g(x)\n@twice\ndef part(x): return x"},
        "2",
        "3",
    ),
    "what a decorator wraps": (
        {
            MINE: "import functools\ndef plain(g):\n    @functools.wraps(g)\n"
            "    def call(x): return g(x)\n    return call\n"
            "@plain\ndef part(x): return 2 * x"
        },
        "2",
        "3",
    ),
    "class": ({MINE: "class part:\n    def __call__(self, x): return 2 * x"}, "2", "3"),
    "attribute of a class": ({MINE: "class part:\n    k = 2\n    def __call__(self, x): return self.k * x"}, "2", "3"),
    "base class": (
        {
            MINE: "from beside_to_edit import Base\nclass part(Base):\n    pass",
            BESIDE: "class Base:\n    def __call__(self, x): return 2 * x",
        },
        "2",
        "3",
    ),
    "attribute of an object": (
        {
            MINE: "class Part:\n    def __init__(self, k): self.k = k\n    def __call__(self, x): return self.k * x\n"
            "part = Part(2)"
        },
        "(2)",
        "(3)",
    ),
    "slot of an object": (
        {
            MINE: "class Part:\n    __slots__ = ('k',)\n    def __init__(self, k): self.k = k\n"
            "    def __call__(self, x): return self.k * x\npart = Part(2)"
        },
        "(2)",
        "(3)",
    ),
    "dataclass with slots": (
        {
            MINE: "from dataclasses import dataclass\n@dataclass(slots=True)\nclass Part:\n    k: float\n"
            "    def __call__(self, x): return self.k * x\npart = Part(2)"
        },
        "(2)",
        "(3)",
    ),
    "method of a class of mappings": (
        {MINE: "class Part(dict):\n    def __call__(self, x): return 2 * x\npart = Part(a=1)"},
        "2",
        "3",
    ),
    "content of such an object": (
        {MINE: "class Part(dict):\n    def __call__(self, x): return self['a'] * x\npart = Part(a=2)"},
        "2",
        "3",
    ),
    "bound method": (
        {
            MINE: "class Part:\n    def __init__(self, k): self.k = k\n    def go(self, x): return self.k * x\n"
            "part = Part(2).go"
        },
        "(2)",
        "(3)",
    ),
    "helper beside": (
        {MINE: "from beside_to_edit import low\ndef part(x): return low(x)", BESIDE: "def low(x): return 2 * x"},
        "2",
        "3",
    ),
    "helper of a helper": (
        {
            MINE: "import beside_to_edit\ndef part(x): return beside_to_edit.low(x)",
            BESIDE: "K = 2\ndef low(x): return lower(x)\ndef lower(x): return K * x",
        },
        "2",
        "3",
    ),
    "helper imported where it is needed": (
        {
            MINE: "def part(x):\n    from beside_to_edit import low\n    return low(x)",
            BESIDE: "def low(x): return 2 * x",
        },
        "2",
        "3",
    ),
    "module imported where it is needed": (
        {MINE: "def part(x):\n    import beside_to_edit as b\n    return b.low(x)", BESIDE: "def low(x): return 2 * x"},
        "2",
        "3",
    ),
    "constant imported where it is needed": (
        {MINE: "def part(x):\n    from beside_to_edit import K\n    return K * x", BESIDE: "K = 2"},
        "2",
        "3",
    ),
    "constant imported if it is there": (
        {
            MINE: "try:\n    from beside_to_edit import K\nexcept ImportError:\n    K = 1\ndef part(x): return K * x",
            BESIDE: "K = 2",
        },
        "2",
        "3",
    ),
    "everything imported": (
        {MINE: "from beside_to_edit import *\ndef part(x): return low(x)", BESIDE: "def low(x): return 2 * x"},
        "2",
        "3",
    ),
    "helper in a package beside": (
        {
            MINE: "from package_to_edit.inner import low\ndef part(x): return low(x)",
            "package_to_edit/__init__.py": "",
            INNER: "def low(x): return 2 * x",
        },
        "2",
        "3",
    ),
    "object made by a helper": (
        {
            MINE: "from beside_to_edit import low\ndef part(x): return low(x)",
            BESIDE: "import numpy as np\nlow = np.vectorize(lambda x: 2 * x)",
        },
        "2",
        "3",
    ),
    "helper's constant set from here": (
        {
            MINE: "import beside_to_edit\nbeside_to_edit.K = 2\ndef part(x): return beside_to_edit.low(x)",
            BESIDE: "K = 1\ndef low(x): return K * x",
        },
        "K = 2",
        "K = 3",
    ),
    "compiled by Numba": ({MINE: "import numba\n@numba.njit\ndef part(x): return 2 * x"}, "2", "3"),
    "constant of compiled code": (
        {MINE: "import numba\nK = 2\n@numba.njit\ndef low(x): return K * x\ndef part(x): return low(x)"},
        "2",
        "3",
    ),
    "file of numbers read into a mapping": (
        {
            MINE: "import json\nfrom pathlib import Path\n"
            "K = json.loads((Path(__file__).parent / 'k.json').read_text())\ndef part(x): return K['k'] * x",
            "k.json": '{"k": 2}',
        },
        "2}",
        "3}",
    ),
    "file of numbers read into a record": (
        {
            MINE: "from dataclasses import dataclass\nfrom pathlib import Path\n"
            "@dataclass\nclass Options:\n    k: str\n"
            "O = Options((Path(__file__).parent / 'k.txt').read_text())\ndef part(x): return O.k * x",
            "k.txt": "2",
        },
        "2",
        "3",
    ),
    "file of numbers read into a class": (
        {
            MINE: "from pathlib import Path\nclass Options:\n"
            "    k = [(Path(__file__).parent / 'k.txt').read_text()]\ndef part(x): return Options.k * x",
            "k.txt": "2",
        },
        "2",
        "3",
    ),
    "weights of a torch module": (
        {
            MINE: "import torch\nfrom pathlib import Path\nnet = torch.nn.Linear(1, 1, bias=False)\n"
            "torch.nn.init.constant_(net.weight, float((Path(__file__).parent / 'k.txt').read_text()))\n"
            "def part(x): return net(x)",
            "k.txt": "2",
        },
        "2",
        "3",
    ),
    "captured torch module": (
        {
            MINE: "import torch\ndef make(net):\n    return lambda x: net(x)\nnet = torch.nn.Linear(1, 1, bias=False)\n"
            "torch.nn.init.constant_(net.weight, 2)\npart = make(net)"
        },
        "2",
        "3",
    ),
    "function of a library under another name": (
        {MINE: "from statistics import mean as centre\ndef part(x): return centre(x)"},
        "mean",
        "median",
    ),
    "library under another name": ({MINE: "import math as m\ndef part(x): return m.sqrt(x)"}, "math", "cmath"),
    "function of byzmesh under another name": (
        {MINE: "from byzmesh.checks import fraction as check\ndef part(x): return check(x)"},
        "fraction",
        "positive",
    ),
    "table filled by a decorator": (
        {
            MINE: "T = {}\ndef add(g):\n    T[g.__name__] = g\n    return g\n@add\ndef low(x): return 2 * x\n"
            "def part(x): return T['low'](x)"
        },
        "2",
        "3",
    ),
    "table filled in a loop": (
        {MINE: "T = {}\nfor k in 'ab':\n    T[k] = lambda x: 2 * x\ndef part(x): return T['a'](x)"},
        "2",
        "3",
    ),
    "table filled by a function": (
        {MINE: "T = []\ndef fill(k): T.append(lambda x: k * x)\nfill(2)\ndef part(x): return T[0](x)"},
        "fill(2)",
        "fill(3)",
    ),
    "what is deleted": (
        {MINE: "T = {'a': len, 'b': max}\ndel T['a']\ndef part(x): return T"},
        "del T['a']",
        "del T['b']",
    ),
    "attribute set by a call": ({MINE: "def part(x): return part.k * x\nsetattr(part, 'k', 2)"}, "2", "3"),
    "global set by a call": (
        {MINE: "K = 1\ndef set_up():\n    global K\n    K = 2\nset_up()\ndef part(x): return K * x"},
        "K = 2",
        "K = 3",
    ),
    "order of calls": (
        {MINE: "T = []\nT.append(len)\nT.append(max)\ndef part(x): return T[0](x)"},
        "T.append(len)\nT.append(max)",
        "T.append(max)\nT.append(len)",
    ),
    "a call made twice": (
        {MINE: "T = []\nT.append(len)\ndef part(x): return T"},
        "T.append(len)",
        "T.append(len)\nT.append(len)",
    ),
    "module given to a function": (
        {
            MINE: "import beside_to_edit\ndef use(m, x): return m.low(x)\ndef part(x): return use(beside_to_edit, x)",
            BESIDE: "def low(x): return 2 * x",
        },
        "2",
        "3",
    ),
    "module under a local name": (
        {
            MINE: "import beside_to_edit\ndef part(x):\n    b = beside_to_edit\n    return b.low(x)",
            BESIDE: "def low(x): return 2 * x",
        },
        "2",
        "3",
    ),
    "module imported by a call": (
        {
            MINE: "import importlib\ndef part(x): return importlib.import_module('beside_to_edit').low(x)",
            BESIDE: "def low(x): return 2 * x",
        },
        "2",
        "3",
    ),
    "attribute of a module by its name": (
        {
            MINE: "import beside_to_edit\ndef part(x): return getattr(beside_to_edit, 'low')(x)",
            BESIDE: "def low(x): return 2 * x",
        },
        "2",
        "3",
    ),
    "weak reference": (
        {
            MINE: "import weakref\nclass K:\n    def __init__(self, v): self.v = v\nk = K(2)\n"
            "def make(r):\n    return lambda x: r().v * x\npart = make(weakref.ref(k))"
        },
        "K(2)",
        "K(3)",
    ),
    "global with the name of another function's local": (
        {
            MINE: "from pathlib import Path\nK = [(Path(__file__).parent / 'k.txt').read_text()]\n"
            "def other():\n    K = [0]\n    K[0] = 1\ndef part(x): return K[0] * x",
            "k.txt": "2",
        },
        "2",
        "3",
    ),
}


@pytest.mark.parametrize("what", SEEN)
def test_an_edit_is_seen(tmp_path: Path, what: str) -> None:
    files, old, new = SEEN[what]
    assert any(old in text for text in files.values())
    before = identity(load(tmp_path, files).part)
    assert before is not None and identity(load(tmp_path, files).part) == before, "the same code, the same identity"
    edited = {name: text.replace(old, new) for name, text in files.items()}
    assert identity(load(tmp_path, edited).part) != before


NOT_SEEN: dict[str, tuple[dict[str, str], str, str]] = {
    "comment": ({MINE: "def part(x): return 2 * x  # one"}, "# one", "# another"),
    "docstring": ({MINE: "def part(x):\n    'One.'\n    return 2 * x"}, "'One.'", "'Another.'"),
    "docstring of a helper": (
        {
            MINE: "from beside_to_edit import low\ndef part(x): return low(x)",
            BESIDE: "def low(x):\n    'One.'\n    return x",
        },
        "One",
        "Another",
    ),
    "layout": ({MINE: "def part(x): return 2 * x"}, "return 2 * x", "\n    return (2\n            * x)"),
    "lines above": ({MINE: "# one\ndef part(x): return 2 * x"}, "# one\n", "# one\n\n\n# two\n"),
    "function that is not called": ({MINE: "def other(x): return 3\ndef part(x): return 2 * x"}, "3", "4"),
    "what a script does with it": (
        {
            MINE: "import beside_to_edit\ndef part(x): return beside_to_edit.low(x)\n"
            "if __name__ == '__main__':\n    part(3)",
            BESIDE: "def low(x): return 2 * x",
        },
        "part(3)",
        "part(4)",
    ),
    "buffer": (
        {MINE: "import numpy as np\nROOM = np.empty(3)\ndef part(x):\n    ROOM[:] = x\n    return ROOM\n# one"},
        "# one",
        "# another",
    ),
}


@pytest.mark.parametrize("what", NOT_SEEN)
def test_an_edit_of_words_is_not_seen(tmp_path: Path, what: str) -> None:
    files, old, new = NOT_SEEN[what]
    assert any(old in text for text in files.values())
    before = identity(load(tmp_path, files).part)
    edited = {name: text.replace(old, new) for name, text in files.items()}
    assert identity(load(tmp_path, edited).part) == before


CACHES = {
    "item": "C = {}\ndef part(x):\n    C[x] = 2\n    return C[x]",
    "method whose result is used": "C = {}\ndef part(x): return C.setdefault(x, 2)",
    "method in a lambda": "C = {}\npart = lambda x: C.update({x: 2})",
    "global": "N = 0\ndef part(x):\n    global N\n    N += 1\n    return N",
    "array": "import numpy as np\nB = np.zeros(3)\ndef part(x): return np.add(B, 1, out=B)",
    "class": "class A:\n    c = {}\n    @classmethod\n    def go(cls, x):\n        cls.c[x] = 2\ndef part(x): A.go(x)",
    "class through an object": "class A:\n    c = {}\n    def go(self, x): self.c[x] = 2\ndef part(x): A().go(x)",
    "other module": "import beside_to_edit as b\ndef part(x):\n    b.C[x] = 2",
    "imported": "from beside_to_edit import C\ndef part(x):\n    C[x] = 2",
    "function of another module": "from beside_to_edit import fill\ndef part(x): fill(x)",
    "missing item": "import collections\nC = collections.defaultdict(list)\ndef part(x): return len(C[x])",
}


@pytest.mark.parametrize("what", CACHES)
def test_what_a_part_stores_while_it_runs_is_no_edit(tmp_path: Path, what: str) -> None:
    module = load(tmp_path, {MINE: CACHES[what], BESIDE: "C = {}\ndef fill(x): C[x] = 2"})
    before = identity(module.part)
    module.part(1)
    assert identity(module.part) == before


def test_a_data_file_read_when_the_part_is_imported_is_seen(tmp_path: Path) -> None:
    script = "import numpy as np\nfrom pathlib import Path\nW = np.load(Path(__file__).parent / 'w.npy')\n"
    script += "K = float(np.load(Path(__file__).parent / 'w.npy').sum())\n"
    for part in ("def part(x): return W @ x", "def part(x): return K * x"):
        np.save(tmp_path / "w.npy", np.ones(3))
        before = identity(load(tmp_path, {MINE: script + part}).part)
        assert identity(load(tmp_path, {MINE: script + part}).part) == before
        np.save(tmp_path / "w.npy", np.zeros(3))
        assert identity(load(tmp_path, {MINE: script + part}).part) != before


def test_a_constant_changed_in_memory_is_seen(tmp_path: Path) -> None:
    module = load(tmp_path, {MINE: "TAU = 2\nclass C:\n    k = 1\ndef part(x): return TAU * x * C.k"})
    before = identity(module.part)
    module.TAU = 3
    assert identity(module.part) != before
    module.TAU = 2
    assert identity(module.part) == before
    module.C.k = 2
    assert identity(module.part) != before


def test_a_helper_edited_after_it_was_imported_does_not_lend_its_new_text_to_the_old_code(tmp_path: Path) -> None:
    files = {MINE: "from beside_to_edit import low\ndef part(x): return low(x)", BESIDE: "def low(x): return 2 * x"}
    edited = {**files, BESIDE: "def low(x): return 3 * x"}
    new = identity(load(tmp_path, edited).part)
    old = load(tmp_path, files)
    (tmp_path / BESIDE).write_text(edited[BESIDE])
    assert identity(old.part) != new


SESSION = """
import code
console = code.InteractiveConsole({{"__name__": "__main__"}})
for line in {lines!r}:
    console.push(line)
"""
TYPED = [
    "import functools, sys",
    "sys.path.insert(0, '')",
    "TAU = 2",
    "def low(x): return TAU * x",
    "",
    "class Part:",
    "    def __init__(self, k): self.k = k",
    "    def __call__(self, x): return self.k * low(x) * 5",
    "",
    "def part(x, k=7): return low(x) + k",
    "",
    "from byzmesh.config.identity import identity",
    "print([identity(p) for p in (part, lambda x: part(x), Part(11), functools.partial(part, k=9))])",
]


def typed(lines: list[str], folder: Path) -> list[str]:
    told = subprocess.run(
        [sys.executable, "-c", SESSION.format(lines=lines)], cwd=folder, capture_output=True, text=True, check=True
    )
    found: list[str] = eval(told.stdout)
    return found


@pytest.mark.parametrize(
    ("old", "new", "which"),
    [
        ("TAU = 2", "TAU = 3", (0, 1, 2, 3)),
        ("TAU * x", "TAU + x", (0, 1, 2, 3)),
        ("k=7", "k=8", (0, 1, 3)),
        ("* 5", "* 6", (2,)),
        ("Part(11)", "Part(12)", (2,)),
        ("k=9", "k=10", (3,)),
    ],
)
def test_what_is_typed_into_a_console_is_seen_without_source(
    tmp_path: Path, old: str, new: str, which: tuple[int, ...]
) -> None:
    before, same = typed(TYPED, tmp_path), typed(TYPED, tmp_path)
    assert before == same and len(set(before)) == 4
    after = typed([line.replace(old, new) for line in TYPED], tmp_path)
    assert tuple(number for number in range(4) if before[number] != after[number]) == which


OPAQUE = """
import ctypes
LIBRARY = ctypes.CDLL(None)
def make(library):
    return lambda x: library.abs(x)
part = make(LIBRARY)
"""


def test_an_object_that_hides_its_state_is_reported_and_never_taken_for_the_same(tmp_path: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    code += "from mine_to_edit import part; from byzmesh.config.identity import identity; print(identity(part))"
    load(tmp_path, {MINE: OPAQUE})
    one, other = (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert one != other and " unseen ctypes.CDLL " in one
    assert changes({"rule mine": one}, {"rule mine": other}) == (
        "what ctypes.CDLL does in rule mine cannot be seen; register it with revision=1, and 2 when it changes",
    )


def test_a_compiled_module_of_ones_own_counts_by_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"fast_to_edit{EXTENSION_SUFFIXES[-1]}"
    module = ModuleType("fast_to_edit")
    module.__file__ = str(path)
    setattr(module, "Low", type("Low", (), {"__module__": "fast_to_edit"}))
    monkeypatch.setitem(sys.modules, "fast_to_edit", module)
    part = load(tmp_path, {MINE: "import fast_to_edit\ndef part(x): return fast_to_edit.Low()"}).part
    path.write_bytes(b"one")
    before = identity(part)
    assert identity(part) == before
    path.write_bytes(b"another")
    assert identity(part) != before


def test_cells_of_a_notebook_are_seen_by_their_text(tmp_path: Path) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    number = itertools.count()

    def cell(text: str) -> None:
        """Run a cell as a notebook's kernel does: under a file name that only `linecache` knows."""
        file = str(tmp_path / f"kernel-{next(number)}.py")
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), names)

    cell("TAU = 2")
    cell("def low(x):\n    return TAU * x\n")
    part = "def part(x):\n    'One.'\n    return low(x)\n"
    cell(part)
    before = identity(names["part"])
    cell(part.replace("One", "Another"))
    assert identity(names["part"]) == before, "run again, in another cell"
    for text in ("TAU = 3", "def low(x):\n    return TAU + x\n", part.replace("low(x)", "2 * low(x)")):
        cell(text)
        after = identity(names["part"])
        assert after != before, text
        before = after
