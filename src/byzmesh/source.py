"""Source text as statements: what a file binds at its top level, and which of its statements a function depends on.

Two texts are the same if Python does the same: whitespace, comments, docstrings and the annotations of a function's
parameters are left out. A file is read when a part of it is registered, because it may be edited while the process
continues with what it has imported.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import dis
import functools
import linecache
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.abc import ExecutionLoader
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

PACKAGE = str(Path(__file__).parent)
"""Folder of byzmesh."""
_TEXTS: dict[str, str] = {}
"""File -> its text when something in it was registered."""


def remember(function: Callable[..., Any]) -> None:
    """Keep the text of the files that define and register a function, unless they belong to byzmesh."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    places = [(frame.f_code.co_filename, frame.f_globals)]
    if isinstance(function, FunctionType):
        places.append((function.__code__.co_filename, function.__globals__))
    for file, names in places:
        text = None if file.startswith(PACKAGE) else text_in(file, names)
        if text:
            _TEXTS[file] = text


def text_of(file: str, names: Mapping[str, Any], codes: Collection[CodeType]) -> str | None:
    """The text of a file or cell that this code in memory comes from: as it was at registration, or as it is now.

    None where there is none: in a plain REPL, or if the file was edited after it was imported.
    """
    for text in (_TEXTS.get(file), text_in(file, names)):
        if text and compiled(text).issuperset(codes):
            return text
    return None


def text_in(file: str, names: Mapping[str, Any]) -> str | None:
    """The text of a file or a notebook cell; `names` are the globals of its module."""
    loader = names.get("__loader__")
    if isinstance(loader, ExecutionLoader):
        with contextlib.suppress(ImportError):  # the loader knows the main program by another name
            if loader.get_filename(names["__name__"]) == file:
                return loader.get_source(names["__name__"])
    linecache.checkcache(file)
    return "".join(linecache.getlines(file)) or None


@functools.lru_cache(maxsize=64)
def compiled(text: str) -> frozenset[CodeType]:
    """All code objects in a text; empty if it is not Python."""
    try:
        return frozenset(nested(compile(text, "<text>", "exec", dont_inherit=True)))
    except (SyntaxError, ValueError):
        return frozenset()


def nested(code: CodeType) -> Iterator[CodeType]:
    """A code object and all that are defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested(constant)


def global_names(code: CodeType) -> set[str]:
    """Names that code, or code defined in it, looks up among the globals, except `__name__` and the like."""
    return {
        str(step.argval)
        for inner in nested(code)
        for step in dis.get_instructions(inner)
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
        and not str(step.argval).startswith("__")
    }


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One statement at the top level of a file.

    first, last  its lines
    tree         normalised, in one line of text
    binds        names that it gives a value, other than by an import
    changes      names whose value it changes in place: `TABLE["x"] = 1`, `NAMES.append("x")`
    sets         those among them that it changes by an assignment
    loads        names that it looks up
    attributes   dotted names that it looks up: `helpers.scale` in `helpers.scale(x)`
    imports      what it imports, also inside of its functions: (name here, module, name there)
    mutable      names that its functions rebind or change in place
    """

    first: int
    last: int
    tree: str
    binds: frozenset[str]
    changes: frozenset[str]
    sets: frozenset[str]
    loads: frozenset[str]
    attributes: frozenset[str]
    imports: tuple[tuple[str, str, str], ...]
    mutable: frozenset[str]


def mutable(text: str) -> frozenset[str]:
    """Names that functions of a text rebind or change in place, and which are therefore not constant."""
    return frozenset().union(*(part.mutable for part in statements(text)))


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
    plain = ast.fix_missing_locations(_Plain().visit(node))
    code = compile(ast.Module([plain], []), "<statement>", "exec", dont_inherit=True)
    return Statement(
        first=first,
        last=last,
        tree=dump(plain),
        binds=frozenset(_bound(plain)),
        changes=_bases(_changed(plain)),
        sets=_bases(_assigned(plain)),
        loads=frozenset(global_names(code)),
        attributes=frozenset(_dotted(plain)),
        imports=tuple(_imports(plain)),
        mutable=frozenset(_mutable(plain)),
    )


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


def _mutable(node: ast.stmt) -> Iterator[str]:
    for function in ast.walk(node):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for part in ast.walk(function):
                if isinstance(part, ast.Global):
                    yield from part.names
                elif isinstance(part, ast.stmt):
                    yield from _bases(_changed(part))
                elif isinstance(part, ast.keyword) and part.arg == "out" and isinstance(part.value, ast.Name):
                    yield part.value.id


class _Plain(ast.NodeTransformer):
    """Leaves out docstrings and annotations, except those of class fields, which may matter (dataclasses)."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return ast.copy_location(ast.Pass(), node)
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return self.generic_visit(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.body = [part if isinstance(part, ast.AnnAssign) else self.visit(part) for part in node.body]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)


def _assigned(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return [target for target in node.targets if not isinstance(target, ast.Name)]
    return [node.target] if isinstance(node, ast.AugAssign) else []


def _changed(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        return [node.value.func]
    return _assigned(node)


def _bases(found: Iterable[ast.expr]) -> frozenset[str]:
    """The names that attributes and items belong to."""
    bases = []
    for part in found:
        while isinstance(part, (ast.Attribute, ast.Subscript)):
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


def dump(node: Any) -> str:
    """A syntax tree as one line that, unlike `ast.dump`, is the same in all versions of Python. `pass` is left out.

    >>> dump(ast.parse("x = 1.0").body[0])
    "Assign(targets=[Name(id=str 'x')],value=Constant(value=float 1.0))"
    """
    if isinstance(node, ast.AST):
        fields = (
            f"{name}={dump(value)}"
            for name, value in ast.iter_fields(node)
            if name not in ("ctx", "kind", "type_comment") and value is not None and value != []
        )
        return f"{type(node).__name__}({','.join(fields)})"
    if isinstance(node, list):
        return f"[{','.join(dump(item) for item in node if not isinstance(item, ast.Pass))}]"
    return f"{type(node).__name__} {node!r}"
