"""The source of a decorated function or class with all that it uses, annotations included, as a module of its own."""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
import textwrap
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from alipes.errors import ExportError
from alipes.repository.export.python_source import FunctionSource, is_importable, is_literal
from alipes.repository.export.refusals import WRITE_A_MODEL

__all__ = ["app_source"]


def app_source(thing: Any) -> FunctionSource:
    """Take a decorated function or class out of its module.

    Raises:
        ExportError: If it uses what cannot be written down; the text names it.
    """
    source = FunctionSource()
    _take(thing, source, set())
    return source


def _take(thing: Any, source: FunctionSource, seen: set[str]) -> None:
    name = thing.__name__
    seen.add(name)
    free = sorted({one for function in _functions(thing) for one in function.__code__.co_freevars} - {"__class__"})
    if free:
        raise ExportError(
            f"'{name}' uses {', '.join(free)} of the function around it (a closure): make it a constant or an array of "
            f"the module, or {WRITE_A_MODEL}"
        )
    try:
        text = textwrap.dedent(inspect.getsource(thing)).rstrip()
        tree = ast.parse(text)
    except (OSError, TypeError, SyntaxError) as error:
        raise ExportError(
            f"the source of '{name}' cannot be found: write it to a file, and run or import that"
        ) from error
    space = vars(sys.modules[thing.__module__])
    for used in _names(tree):
        if used in space and used not in seen:
            _take_global(name, used, space[used], source, seen)
        elif used not in space and not hasattr(builtins, used):
            raise ExportError(f"'{name}' uses '{used}', which is not defined")
    source.functions.append(text)


def _take_global(user: str, name: str, value: Any, source: FunctionSource, seen: set[str]) -> None:
    if isinstance(value, ModuleType):
        source.imports.append(f"import {value.__name__} as {name}")
    elif isinstance(value, np.ndarray) and value.dtype != object:
        source.arrays[name] = value
    elif is_importable(value):
        source.imports.append(f"from {value.__module__} import {value.__qualname__} as {name}")
    elif isinstance(value, FunctionType | type) and value.__name__ == name:
        _take(value, source, seen)
        return
    elif is_literal(value):
        source.constants.append(f"{name} = {value!r}")
    elif (home := _home(name, value)) is not None:
        source.imports.append(f"from {home} import {name}")
    else:
        raise ExportError(
            f"'{user}' uses '{name}', a {type(value).__name__}: only modules, functions, classes, arrays and plain "
            f"constants can be written; {WRITE_A_MODEL}"
        )
    seen.add(name)


def _home(name: str, value: Any) -> str | None:
    """A module that has a value under its name, such as `Annotated` or `NDArray`, which do not say where they are."""
    homes = ("typing", "collections.abc", "numpy.typing")
    return next((home for home in homes if getattr(sys.modules.get(home), name, None) is value), None)


def _functions(thing: Any) -> list[FunctionType]:
    """A function, or those that a class has written itself rather than been given by a decorator."""
    if not isinstance(thing, type):
        return [thing]
    values = [one for one in vars(thing).values() if isinstance(one, FunctionType)]
    return [one for one in values if one.__code__.co_filename == inspect.getsourcefile(thing)]


def _names(tree: ast.AST) -> list[str]:
    """Names that a source reads of its module: neither its arguments nor what it sets, but those of annotations."""
    loaded: list[str] = []
    stored: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                loaded.append(node.id)
            else:
                stored.add(node.id)
        elif isinstance(node, ast.arg):
            stored.add(node.arg)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            stored |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler) and node.name:
            stored.add(node.name)
    return [name for name in dict.fromkeys(loaded) if name not in stored]
