"""What cannot be written as a Python function, each kind in one line: what it is, and what to do instead."""

from __future__ import annotations

import inspect
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Final

import numpy as np

__all__ = ["WRITE_A_MODEL", "why_no_function", "why_not_plain"]

WRITE_A_MODEL: Final = "write a model.py (docs/how-to/serve-python.md) and export its path"


def why_no_function(source: Any) -> str:
    """Why something that is no plain function cannot be exported as one, and what to export instead."""
    name = getattr(source, "__name__", type(source).__name__)
    match source:
        case str() | Path():
            return f"'{source}' is neither the path of a file that ends in .py nor of a folder with a model.py"
        case type():
            what = f"'{name}' is a class: export a function that makes one and calls it, or"
        case MethodType():
            what = f"'{name}' is a method, whose {type(source.__self__).__name__} has a state that is not written:"
        case partial():
            return "a partial call has arguments of its own: write a function that makes the call with them"
        case BuiltinFunctionType() | np.ufunc():
            return f"'{name}' is not written in Python: write a function that calls it"
        case _ if inspect.isfunction(getattr(source, "__wrapped__", None)):
            what = f"'{name}' is decorated: export the function without its decorator, or"
        case _ if callable(source):
            what = f"it is an instance of {type(source).__name__}, whose state is not written:"
        case _:
            return f"export a function of arrays, or {WRITE_A_MODEL}"
    return f"{what} {WRITE_A_MODEL}"


def why_not_plain(function: FunctionType) -> str | None:
    """Why a function does not answer a call with arrays; None where it does."""
    name = function.__name__
    if inspect.iscoroutinefunction(function):
        return f"'{name}' is async: export a plain function, or {WRITE_A_MODEL}, whose execute may be async"
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return f"'{name}' is a generator: return arrays, or, for several responses to a request, {WRITE_A_MODEL}"
    owner, _, _ = function.__qualname__.rpartition(".")
    if owner and not owner.endswith("<locals>"):
        return f"'{name}' is a method of the class {owner.rpartition('.')[2]}: {WRITE_A_MODEL}"
    return None
