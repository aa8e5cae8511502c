"""What cannot be written as a Python function, each kind in one line: what it is, and what to do instead."""

from __future__ import annotations

import inspect
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, MethodType
from typing import Any, Final

import numpy as np

from alipes.worker.apps.options import options_of

__all__ = ["NO_PLAIN_FUNCTION", "WRITE_A_MODEL", "why_no_function", "why_not_written"]

NO_PLAIN_FUNCTION: Final = (
    "is no plain function: neither lambdas, methods nor partial calls can be written; write it as `def name(x): ...`"
)

WRITE_A_MODEL: Final = "write a model.py (alipes help python) and export its path"


def why_no_function(source: Any) -> str:
    """Why something that is no plain function cannot be exported as one, and what to export instead."""
    name = getattr(source, "__name__", type(source).__name__)
    match source:
        case str() | Path():
            return f"'{source}' is neither the path of a file that ends in .py nor of a folder with a model.py"
        case type():
            return f"class '{name}' needs a method predict or __call__ that answers, or {WRITE_A_MODEL}"
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


def why_not_written(source: Any) -> str | None:
    """Why a function or class cannot be a model of its own; None where it can."""
    name = source.__name__
    options = options_of(source)
    if options is not None and (options.before is not None or options.after is not None):
        return "before= and after= are models of their own: serve the app as it is, with alipes serve app.py"
    owner, _, _ = source.__qualname__.rpartition(".")
    if owner and not owner.endswith("<locals>") and not isinstance(source, type):
        return f"'{name}' is a method of the class {owner.rpartition('.')[2]}: export the class, or {WRITE_A_MODEL}"
    return None
