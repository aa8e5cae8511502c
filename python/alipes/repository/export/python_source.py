"""The source of a function with all that it uses, as a module of its own: text for people, nothing pickled."""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
import textwrap
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from alipes.errors import ExportError
from alipes.repository.export.refusals import WRITE_A_MODEL

__all__ = ["FunctionSource", "function_source", "is_importable", "is_literal"]


@dataclass(slots=True)
class FunctionSource:
    """A function taken out of the module that it was written in.

    Attributes:
        imports: Lines that import what it uses.
        constants: Lines that define the constants that it uses.
        functions: The text of the functions that it calls, and then its own.
        arrays: Arrays that it uses, by name; they are to be stored beside.
    """

    imports: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    def text(self, arrays_file: str) -> str:
        """A module that defines all of it, where a file beside it holds the arrays."""
        imports, constants = list(self.imports), list(self.constants)
        if self.arrays:
            imports += ["import pathlib", "import numpy"]
            constants.append(f"with numpy.load(pathlib.Path(__file__).with_name({arrays_file!r})) as _arrays:")
            constants += [f"    {name} = _arrays[{name!r}]" for name in self.arrays]
        parts = ["\n".join(sorted(set(imports))), "\n".join(constants), *(f"\n{one}" for one in self.functions)]
        return "from __future__ import annotations\n\n" + "\n\n".join(part for part in parts if part) + "\n"


def function_source(function: FunctionType) -> FunctionSource:
    """Take a function out of its module.

    Raises:
        ExportError: If it uses what cannot be written down; the text names it.
    """
    source = FunctionSource()
    _take(function, source, set())
    return source


def _take(function: FunctionType, source: FunctionSource, seen: set[str]) -> None:
    name = function.__name__
    if name in seen:
        return
    seen.add(name)
    if function.__closure__:
        used = ", ".join(function.__code__.co_freevars)
        raise ExportError(
            f"function '{name}' uses {used} of the function around it (a closure): make it a constant or an array of "
            f"the module, or {WRITE_A_MODEL}"
        )
    if name == "<lambda>":
        raise _no_plain_function(name)
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        raise ExportError(
            f"the source of function '{name}' cannot be found: write the function to a file, and run or import that"
        ) from error
    tree = ast.parse(text).body[0] if not text.startswith("@") else None
    if not isinstance(tree, ast.FunctionDef):
        raise _no_plain_function(name)
    names = _names(tree)
    changed = [f"'{name}' (global)" for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names]
    changed += [f"'{one}' of the module" for one in _stored_into(tree) if one in names and one in function.__globals__]
    if changed:
        raise ExportError(
            f"function '{name}' changes {changed[0]}, a state that each worker would have for itself: {WRITE_A_MODEL}"
        )
    for used in names:
        if used in function.__globals__ and used not in seen:
            _take_global(name, used, function.__globals__[used], source, seen)
        elif used not in function.__globals__ and not hasattr(builtins, used):
            raise ExportError(f"function '{name}' uses '{used}', which is not defined")
    source.functions.append(text.rstrip())


def _no_plain_function(name: str) -> ExportError:
    return ExportError(
        f"'{name}' is no plain function: neither lambdas, methods nor decorated functions can be written; write it as "
        "`def name(x): return ...`"
    )


def _take_global(user: str, name: str, value: Any, source: FunctionSource, seen: set[str]) -> None:
    if isinstance(value, ModuleType):
        source.imports.append(f"import {value.__name__} as {name}")
    elif isinstance(value, np.ndarray) and value.dtype != object:
        source.arrays[name] = value
    elif is_importable(value):
        source.imports.append(f"from {value.__module__} import {value.__qualname__} as {name}")
    elif isinstance(value, FunctionType) and value.__name__ == name:
        _take(value, source, seen)
        return
    elif is_literal(value):
        source.constants.append(f"{name} = {value!r}")
    else:
        raise ExportError(
            f"function '{user}' uses '{name}', a {type(value).__name__}: only modules, functions, arrays and plain "
            f"constants can be written; {WRITE_A_MODEL}"
        )
    seen.add(name)


def is_importable(value: Any) -> bool:
    """Whether something is found under its own name in an installed package, rather than in a script."""
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    file = getattr(module, "__file__", None) or ""
    name = getattr(value, "__qualname__", "")
    installed = "site-packages" in file or getattr(module, "__name__", "").partition(".")[0] in sys.stdlib_module_names
    return installed and module is not sys.modules.get("__main__") and getattr(module, name, None) is value


def is_literal(value: Any) -> bool:
    """Whether a value can be written as Python reads it."""
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, TypeError):
        return False


def _names(function: ast.FunctionDef) -> list[str]:
    """Names that a function reads and does not set, without those of annotations, in their order."""
    loaded: list[str] = []
    stored = {argument.arg for node in ast.walk(function) if isinstance(node, ast.arguments) for argument in _all(node)}
    for node in _walk(function):
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                loaded.append(node.id)
            else:
                stored.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            stored |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler) and node.name:
            stored.add(node.name)
    return [name for name in dict.fromkeys(loaded) if name not in stored]


def _stored_into(function: ast.FunctionDef) -> list[str]:
    """Names of objects of which the function sets or deletes an item or an attribute, at any depth."""
    owners: list[str] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            owner: ast.expr = node
            while isinstance(owner, ast.Subscript | ast.Attribute):
                owner = owner.value
            if isinstance(owner, ast.Name):
                owners.append(owner.id)
    return owners


def _all(arguments: ast.arguments) -> list[ast.arg]:
    more = [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *more]


def _walk(node: ast.AST) -> list[ast.AST]:
    found = [node]
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns"):
            children = value if isinstance(value, list) else [value]
            found += [one for child in children if isinstance(child, ast.AST) for one in _walk(child)]
    return found
