"""`python app.py`, where the file only declares models: it ends at once, so a line says how they are served."""

from __future__ import annotations

import atexit
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ast

__all__ = ["note", "only_declares"]

_names: list[str] = []


def note(thing: Any, name: str) -> None:
    """Remembers a model of the program that Python was started with; its end says how to serve it.

    Args:
        thing: The decorated function or class.
        name: The model's name.
    """
    if getattr(thing, "__module__", "") == "__main__" and hasattr(sys.modules["__main__"], "__file__"):
        _names.append(name)
        _at_exit(sys.argv[0])


@cache
def _at_exit(file: str) -> None:
    atexit.register(_say, file)


def _say(file: str) -> None:
    if sys.flags.interactive or getattr(sys, "last_value", None) is not None:
        return
    try:
        declares = only_declares(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):  # it was started in another way
        return
    if declares:
        names = ", ".join(dict.fromkeys(_names))
        print(f"{file} only declares models ({names}): serve them with\n  alipes serve {file}", file=sys.stderr)


def only_declares(source: str) -> bool:
    """Whether a program consists of imports, definitions and assignments."""
    import ast  # most programs with models never come here

    declarations = (
        *(ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign),
        *(ast.Try, ast.Pass),
    )
    return all(isinstance(one, declarations) or _is_text(one) for one in ast.parse(source).body)


def _is_text(statement: ast.stmt) -> bool:
    import ast

    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
