"""The normal form of a statement: two statements have the same if Python does the same with them.

Whitespace, comments, docstrings and the annotations of a function's parameters are left out.
"""

from __future__ import annotations

import ast
from typing import Any


def normal(node: ast.stmt) -> ast.stmt:
    """The syntax tree without what Python ignores; the given one is changed."""
    plain: ast.stmt = ast.fix_missing_locations(_Plain().visit(node))
    return plain


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
