"""The names that a source reads of its module, and those that it changes there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

__all__ = ["changed_names", "read_names"]


def read_names(tree: ast.AST, *, annotations: bool) -> list[str]:
    """Names that a source reads or sets in its module, in their order: neither its arguments nor its own variables.

    Args:
        tree: The source of a function or class.
        annotations: Whether those that annotations name count too.
    """
    found: list[str] = []
    own: set[str] = set()
    shared: set[str] = set()
    for node in _walk(tree, annotations):
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                found.append(node.id)
            else:
                own.add(node.id)
        elif isinstance(node, ast.Global):
            found += node.names
            shared |= set(node.names)
        elif isinstance(node, ast.arg):
            own.add(node.arg)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            own |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler) and node.name:
            own.add(node.name)
    return [name for name in dict.fromkeys(found) if name not in own or name in shared]


def changed_names(tree: ast.AST) -> list[str]:
    """Names that a source declares `global`, or of which it sets or deletes an item or an attribute, at any depth."""
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            found += node.names
        elif isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            owner: ast.expr = node
            while isinstance(owner, ast.Subscript | ast.Attribute):
                owner = owner.value
            if isinstance(owner, ast.Name):
                found.append(owner.id)
    return list(dict.fromkeys(found))


def _walk(node: ast.AST, annotations: bool) -> Iterator[ast.AST]:
    yield node
    for name, value in ast.iter_fields(node):
        if annotations or name not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _walk(child, annotations)
