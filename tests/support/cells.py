"""The code cells of a notebook, kept as a text file: run one by one, joined to a script, or made a notebook again."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from support.syntax import syntax_tree

_HEAD = re.compile(r"^# In \[(\d+)\]:$\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Cell:
    """One code cell, with the number that its notebook shows."""

    number: int
    code: str

    def run(self, space: dict[str, Any]) -> object:
        """What the cell shows: the value of its last line, where that is an expression."""
        tree = syntax_tree(self.code)
        last = tree.body[-1] if tree.body else None
        if not isinstance(last, ast.Expr):
            exec(self._compiled(tree), space)
            return None
        exec(self._compiled(ast.Module(tree.body[:-1], [])), space)
        return eval(compile(ast.Expression(last.value), f"<cell {self.number}>", "eval"), space)

    def _compiled(self, tree: ast.Module) -> Any:
        return compile(tree, f"<cell {self.number}>", "exec")


def read_cells(file: Path) -> list[Cell]:
    """The cells of a file, each below a line `# In [number]:`."""
    parts = _HEAD.split(file.read_text(encoding="utf-8"))
    assert not parts[0].strip(), f"{file} begins with something that is no cell"
    return [Cell(int(number), code.strip() + "\n") for number, code in zip(parts[1::2], parts[2::2], strict=True)]


def with_lines(cells: Sequence[Cell], changes: Mapping[str, str]) -> list[Cell]:
    """The cells with some lines exchanged for others; each is there exactly once, and nothing else changes."""
    found = dict.fromkeys(changes, 0)
    changed = []
    for cell in cells:
        lines = cell.code.splitlines()
        for index, line in enumerate(lines):
            if line in changes:
                found[line] += 1
                lines[index] = changes[line]
        changed.append(replace(cell, code="\n".join(lines) + "\n"))
    assert set(found.values()) <= {1}, f"not there exactly once: {found}"
    return changed


def as_script(cells: Sequence[Cell]) -> str:
    """All cells as one program, which prints the number of each cell before it runs."""
    return "".join(f"print('cell {cell.number}', flush=True)\n{cell.code}\n" for cell in cells)


def as_notebook(cells: Sequence[Cell]) -> str:
    """All cells as a notebook file."""
    made = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"cell-{cell.number}",
            "metadata": {},
            "outputs": [],
            "source": cell.code,
        }
        for cell in cells
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps({"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5})
