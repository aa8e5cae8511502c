"""The answer of a model, for people as a table, for programs as JSON."""

from __future__ import annotations

import json
import math
from typing import Any, Final

import numpy as np
from rich.console import Console

from alipes.cli.columns import print_columns
from alipes.cli.values import Array
from alipes.client import Answer

__all__ = ["as_document", "plain", "print_answer"]

_WHOLE: Final = 100
"""Elements of an array that are all shown; of a longer one the first and the last."""

_HEADINGS: Final = ("output", "datatype", "shape")
_GAP: Final = 2
"""Spaces between two columns."""

_NARROW: Final = 30
_UNFOLDED: Final = 100_000
"""Columns for a reader that folds nothing."""


def print_answer(answer: Answer, datatypes: dict[str, str]) -> None:
    """Prints the outputs as a table: a row for each."""
    heads = [
        (name, datatypes.get(name, ""), f"[{','.join(map(str, array.shape))}]")
        for name, array in answer.outputs.items()
    ]
    widths = [max(map(len, column)) + _GAP for column in zip(_HEADINGS, *heads, strict=False)]
    console = Console()
    columns = max(console.width - sum(widths), _NARROW) if console.is_terminal else _UNFOLDED
    rows = [(*head, _text(array, columns)) for head, array in zip(heads, answer.outputs.values(), strict=True)]
    print_columns((*_HEADINGS, "value"), rows, console=console)


def as_document(answer: Answer, model: str) -> str:
    """The answer as JSON: outputs by name."""
    document: dict[str, Any] = {"model": model}
    if answer.version:
        document["version"] = answer.version
    if answer.request_id:
        document["id"] = answer.request_id
    if answer.parameters:
        document["parameters"] = answer.parameters
    document["outputs"] = {name: plain(array) for name, array in answer.outputs.items()}
    return json.dumps(document, ensure_ascii=False)


def plain(array: Array) -> Any:
    """An array as JSON has it. Numbers that JSON lacks are text: `"NaN"`, `"Infinity"`."""
    if array.dtype.kind == "f":
        # The shortest text that is this number in its own precision: 0.1, not 0.10000000149011612.
        array = array.astype(np.str_).astype(np.float64)
    return _plain(array.tolist())


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _text(array: Array, columns: int) -> str:
    if array.dtype.kind == "O":
        array = np.vectorize(
            lambda one: one.decode(errors="backslashreplace") if isinstance(one, bytes) else str(one), otypes=[object]
        )(array)
    return np.array2string(array, threshold=_WHOLE, max_line_width=columns)
