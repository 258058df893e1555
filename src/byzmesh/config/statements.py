"""Source text as statements: what a file binds and changes at its top level, and what a function of it depends on.

Two statements are the same if Python does the same: whitespace, comments, docstrings and the annotations of a
function's parameters are left out.
"""

from __future__ import annotations

import ast
import copy
import dis
import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import CodeType

from byzmesh.config.normal_form import dump, normal
from byzmesh.source import nested

WHOLE = "(whole)"
"""In place of the name that an import brings: nothing says which parts of the module are used."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_IMPORTERS = ("import_module", "__import__")
_CHANGING = {
    "add",
    "append",
    "appendleft",
    "clear",
    "discard",
    "extend",
    "insert",
    "pop",
    "popitem",
    "popleft",
    "remove",
}
_CHANGING |= {"setdefault", "update"}
"""Methods that change an object even if their result is used."""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One statement at the top level of a file.

    first, last  its lines
    tree         normalised, in one line of text
    defines      whether it only defines a function or a class; the order of such statements does not matter
    binds        names that it gives a value, other than by an import
    calls        names of functions that may run when it does, decorators included
    changes      names whose value it may change in place: `TABLE["x"] = 1`, `fill(TABLE)`
    sets         those among them that it changes by an assignment
    loads        names that it looks up
    attributes   dotted names that it looks up: `helpers.scale` in `helpers.scale(x)`
    bare         names that it looks up without an attribute: `helpers` in `use(helpers)`
    imports      what it imports, also inside of its functions: (name here, module, name there)
    mutable      names that its functions rebind or change in place
    """

    first: int
    last: int
    tree: str
    defines: bool
    binds: frozenset[str]
    calls: frozenset[str]
    changes: frozenset[str]
    sets: frozenset[str]
    loads: frozenset[str]
    attributes: frozenset[str]
    bare: frozenset[str]
    imports: tuple[tuple[str, str, str], ...]
    mutable: frozenset[str]


def global_names(code: CodeType) -> set[str]:
    """Names that code, or code defined in it, looks up among the globals, except `__name__` and the like."""
    return {
        str(step.argval)
        for inner in nested(code)
        for step in dis.get_instructions(inner)
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
        and not str(step.argval).startswith("__")
    }


def mutable(text: str) -> frozenset[str]:
    """Names that functions of a text rebind or change in place, and which are therefore not constant."""
    return frozenset().union(*(part.mutable for part in statements(text)))


@functools.lru_cache(maxsize=64)
def actions(text: str) -> dict[str, tuple[int, ...]]:
    """Name -> the statements of a text that may change its value when they run.

    A statement may change what it names, and what the functions that it calls change.

    >>> actions("T = {}\\ndef add(x):\\n    T[x] = 1\\nadd(2)\\ndel T[3]")
    {'T': (2, 3), 'add': (2,)}
    """
    parts = statements(text)
    found: dict[str, list[int]] = {}
    for number, part in enumerate(parts):
        changed, called, waiting = set[str](), set[str](), set(part.calls)
        while waiting:
            name = waiting.pop()
            called.add(name)
            for other in parts:
                if other.defines and name in other.binds:
                    changed |= other.mutable
                    waiting |= other.loads - called
        for name in changed | part.changes:
            found.setdefault(name, []).append(number)
    return {name: tuple(numbers) for name, numbers in sorted(found.items())}


@functools.lru_cache(maxsize=64)
def statements(text: str) -> tuple[Statement, ...]:
    """The top-level statements of a text, without those that run only if the file is started as a program.

    >>> [sorted(part.binds) for part in statements("A = 1\\nB: int = 2\\nA += B\\ndef f(x): return A * x")]
    [['A'], ['B'], ['A'], ['f']]
    >>> one, other = "def f(x: int):\\n    'Twice.'\\n    return 2 * x", "def f(x): return 2*x  # twice"
    >>> statements(one)[0].tree == statements(other)[0].tree
    True
    """
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return ()
    return tuple(_statement(node) for node in body if not _is_main(node))


def _is_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and any(
        isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test)
    )


def _statement(node: ast.stmt) -> Statement:
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    last = node.end_lineno or node.lineno
    plain = normal(node)
    code = compile(ast.Module([plain], []), "<statement>", "exec", dont_inherit=True)
    loads = frozenset(global_names(code))
    return Statement(
        first=first,
        last=last,
        tree=dump(plain),
        defines=isinstance(node, _DEFINITIONS),
        binds=frozenset(_bound(plain)),
        calls=_calls(plain, loads),
        changes=_changes(plain, loads),
        sets=_bases(target for part in ast.walk(plain) if isinstance(part, ast.stmt) for target in _targets(part)),
        loads=loads,
        attributes=frozenset(_dotted(plain)),
        bare=frozenset(_bare(plain)),
        imports=tuple(_imports(plain)),
        mutable=frozenset(_mutable(ast.Module([plain], []))),
    )


def _calls(node: ast.stmt, loads: frozenset[str]) -> frozenset[str]:
    if isinstance(node, _DEFINITIONS):
        return frozenset(
            part.id for item in node.decorator_list for part in ast.walk(item) if isinstance(part, ast.Name)
        )
    return loads


def _changes(node: ast.stmt, loads: frozenset[str]) -> frozenset[str]:
    """Anything that a statement names, unless it only defines, imports or names something."""
    if isinstance(node, _DEFINITIONS):  # a method of an object that decorates may register it there
        calls = [item.func if isinstance(item, ast.Call) else item for item in node.decorator_list]
        return _bases(item for item in calls if isinstance(item, ast.Attribute))
    if isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets):
        return frozenset()
    return loads


def _targets(node: ast.stmt) -> list[ast.expr]:
    """What a statement assigns to or deletes, other than plain names."""
    if isinstance(node, ast.AugAssign):
        return [node.target]
    targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else []
    return [target for target in targets if not isinstance(target, ast.Name)]


class _NoImports(ast.NodeTransformer):
    def visit_Import(self, node: ast.Import) -> ast.AST:
        return ast.copy_location(ast.Pass(), node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        return ast.copy_location(ast.Pass(), node)


def _bound(node: ast.stmt) -> set[str]:
    bare = _NoImports().visit(copy.deepcopy(node))
    code = compile(ast.fix_missing_locations(ast.Module([bare], [])), "<statement>", "exec", dont_inherit=True)
    return {str(step.argval) for step in dis.get_instructions(code) if step.opname == "STORE_NAME"}


def _imports(node: ast.stmt) -> Iterator[tuple[str, str, str]]:
    for part in ast.walk(node):
        if isinstance(part, ast.Import):
            for alias in part.names:
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                yield alias.asname or whole, whole, ""
        elif isinstance(part, ast.ImportFrom):
            for alias in part.names:
                yield alias.asname or alias.name, "." * part.level + (part.module or ""), alias.name
        elif isinstance(part, ast.Call) and ast.unparse(part.func).rpartition(".")[2] in _IMPORTERS:
            for argument in part.args[:1]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield "", argument.value, WHOLE


def _mutable(node: ast.AST, local: frozenset[str] | None = None) -> Iterator[str]:
    """Global names that functions change; `local` are those of the functions around, None outside of any."""
    for part in ast.iter_child_nodes(node):
        if local is not None:
            yield from (name for name in _changed(part) if name not in local)
        inner = frozenset(_locals(part)) if isinstance(part, _FUNCTIONS) else None
        yield from _mutable(part, local if inner is None else inner | (local or frozenset()))


def _locals(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Iterator[str]:
    """A function's parameters and local names. `self` and `cls` do not count: they lead to a class outside."""
    parts = list(ast.walk(function))
    outside = {"self", "cls"}.union(*(part.names for part in parts if isinstance(part, ast.Global | ast.Nonlocal)))
    for part in parts:
        name = part.arg if isinstance(part, ast.arg) else part.id if isinstance(part, ast.Name) else None
        if name and name not in outside and not isinstance(getattr(part, "ctx", None), ast.Load | ast.Del):
            yield name


def _changed(part: ast.AST) -> Iterable[str]:
    """Names that a part of a function rebinds, or whose values it changes in place."""
    if isinstance(part, ast.Global):
        return part.names
    if isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):  # only called for what it does
        return _bases(
            [part.value.func, *part.value.args] if isinstance(part.value.func, ast.Attribute) else part.value.args
        )
    if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _CHANGING:
        return _bases([part.func])
    if isinstance(part, ast.keyword) and part.arg == "out":
        return _bases([part.value])
    return _bases(_targets(part)) if isinstance(part, ast.stmt) else ()


def _bases(parts: Iterable[ast.expr]) -> frozenset[str]:
    """The names that attributes and items belong to."""
    bases = []
    for part in parts:
        while isinstance(part, (ast.Attribute, ast.Subscript, ast.Starred)):
            part = part.value
        bases += [part.id] if isinstance(part, ast.Name) else []
    return frozenset(bases)


def _dotted(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        names = []
        while isinstance(part, ast.Attribute):
            names.append(part.attr)
            part = part.value
        if names and isinstance(part, ast.Name):
            yield ".".join([part.id, *reversed(names)])


def _bare(node: ast.AST) -> Iterator[str]:
    with_attribute = {id(part.value) for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and id(part) not in with_attribute:
            yield part.id
