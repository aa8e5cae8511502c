"""The rooms of the package `alipes`: what each is called, and which others its files import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from support.syntax import syntax_tree

__all__ = ["PACKAGE", "imported_rooms", "importers", "python_files", "room_of"]

PACKAGE = Path(__file__).parents[2] / "python" / "alipes"


def room_of(file: Path) -> str:
    """The room of a file of the package."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def python_files() -> list[Path]:
    """Every file of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def imported_rooms(file: Path) -> Iterator[tuple[int, str]]:
    """The rooms that a file imports, wherever in it, with the line."""
    for node in ast.walk(syntax_tree(file)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: a relative import hides the room"
            names = [f"alipes.{alias.name}" for alias in node.names] if node.module == "alipes" else [node.module or ""]
        else:
            continue
        for name in names:
            if name.startswith("alipes."):
                yield node.lineno, name.split(".")[1]


def importers(room: str) -> set[str]:
    """The rooms whose files import a room."""
    found = {room_of(file) for file in python_files() if any(other == room for _, other in imported_rooms(file))}
    return found - {room}
