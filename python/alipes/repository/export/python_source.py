"""The source of a function or class with all that it uses, as a module of its own: text for people, nothing pickled."""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
import textwrap
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from alipes.errors import ExportError
from alipes.repository.export.refusals import NO_PLAIN_FUNCTION, WRITE_A_MODEL
from alipes.repository.export.source_names import changed_names, read_names

__all__ = ["PythonSource", "python_source"]

_HOMES: Final = ("typing", "collections.abc", "numpy.typing")
"""Modules whose values may not say where they are, such as `Annotated` and `NDArray`."""


@dataclass(slots=True)
class PythonSource:
    """A function or class taken out of the module that it was written in.

    Attributes:
        imports: Lines that import what it uses.
        constants: Lines that define the constants that it uses.
        definitions: The text of the functions and classes that it uses, and then its own.
        arrays: Arrays that it uses, by name; they are to be stored beside.
        changed: Names of the module that it sets or changes, of which each instance will have its own.
    """

    imports: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    definitions: list[str] = field(default_factory=list)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)

    def text(self, arrays_file: str) -> str:
        """A module that defines all of it, where a file beside it holds the arrays."""
        imports, constants = list(self.imports), list(self.constants)
        if self.arrays:
            imports += ["import pathlib", "import numpy"]
            constants.append(f"with numpy.load(pathlib.Path(__file__).with_name({arrays_file!r})) as _arrays:")
            constants += [f"    {name} = _arrays[{name!r}]" for name in self.arrays]
        parts = ["\n".join(sorted(set(imports))), "\n".join(constants), *(f"\n{one}" for one in self.definitions)]
        return "from __future__ import annotations\n\n" + "\n\n".join(part for part in parts if part) + "\n"


def python_source(thing: Any, *, annotated: bool) -> PythonSource:
    """Take a function or class out of its module.

    Args:
        thing: The function or class.
        annotated: Whether its annotations are read when it is served, so that what they name is needed too.

    Raises:
        ExportError: If it uses what cannot be written down; the text names it.
    """
    source = PythonSource()
    _take(thing, source, set(), annotated=annotated)
    return source


def _take(thing: Any, source: PythonSource, seen: set[str], *, annotated: bool) -> None:
    name = thing.__name__
    seen.add(name)
    try:
        functions = _functions(thing)
    except (OSError, TypeError) as error:  # a class that was typed into an interpreter
        raise _without_source(name) from error
    free = sorted({one for function in functions for one in function.__code__.co_freevars} - {"__class__"})
    if free:
        raise ExportError(
            f"'{name}' uses {', '.join(free)} of the function around it (a closure): make it a constant or an array of "
            f"the module, or {WRITE_A_MODEL}"
        )
    if name == "<lambda>":
        raise ExportError(f"'{name}' {NO_PLAIN_FUNCTION}")
    try:
        text = textwrap.dedent(inspect.getsource(thing)).rstrip()
        tree = ast.parse(text)
    except (OSError, TypeError, SyntaxError) as error:
        raise _without_source(name) from error
    space = vars(sys.modules[thing.__module__]) if isinstance(thing, type) else thing.__globals__
    names, changed = read_names(tree, annotations=annotated), changed_names(tree)
    for used in names:
        if used in space and used not in seen:
            _take_global(name, used, space[used], source, seen)
        elif used not in space and used not in changed and not hasattr(builtins, used):
            raise ExportError(f"'{name}' uses '{used}', which is not defined")
    source.changed += [one for one in changed if one in names]
    source.definitions.append(text)


def _without_source(name: str) -> ExportError:
    return ExportError(f"the source of '{name}' cannot be found: write it to a file, and run or import that")


def _take_global(user: str, name: str, value: Any, source: PythonSource, seen: set[str]) -> None:
    if isinstance(value, ModuleType):
        source.imports.append(f"import {value.__name__} as {name}")
    elif isinstance(value, np.ndarray) and value.dtype != object:
        source.arrays[name] = value
    elif is_importable(value):
        source.imports.append(f"from {value.__module__} import {value.__qualname__} as {name}")
    elif isinstance(value, FunctionType | type) and value.__name__ == name:
        # The annotations of a class may be its fields; those of a further function nobody reads.
        _take(value, source, seen, annotated=isinstance(value, type))
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


def _home(name: str, value: Any) -> str | None:
    """A module that has a value under its name, such as `Annotated` or `NDArray`, which do not say where they are."""
    return next((home for home in _HOMES if getattr(sys.modules.get(home), name, None) is value), None)


def _functions(thing: Any) -> list[FunctionType]:
    """A function, or those that a class has written itself rather than been given by a decorator."""
    if not isinstance(thing, type):
        return [thing]
    values = [one for one in vars(thing).values() if isinstance(one, FunctionType)]
    return [one for one in values if one.__code__.co_filename == inspect.getsourcefile(thing)]
