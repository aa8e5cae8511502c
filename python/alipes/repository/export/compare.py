"""Whether an exported file gives the numbers of what it was made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from alipes.errors import ExportError
from alipes.progress.work import current

__all__ = ["check_numbers", "run_onnx"]

# In units of the largest number compared. What engines make of the order of sums stays well below.
_TOLERANCES: Final = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 1e-4, "float64": 1e-8}

_SMALL_BYTES: Final = 4 << 20
"""To start a thread for each core, and to end it, takes longer than to run so small a model once."""


def run_onnx(file: Path, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> list[np.ndarray]:
    """Run an ONNX file once, without the optimisations that would cost more than the run."""
    current().step("running what was written")
    onnxruntime: Any = import_module("onnxruntime")
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.log_severity_level = 3
    if file.stat().st_size < _SMALL_BYTES:
        settings.intra_op_num_threads = 1
    # Threads that look out for more work take it from a machine that has other work.
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(str(file), settings, providers=["CPUExecutionProvider"])
    found: list[np.ndarray] = session.run(list(outputs), dict(inputs))
    return found


def check_numbers(
    model: str,
    names: Sequence[str],
    expected: Sequence[np.ndarray],
    found: Sequence[np.ndarray],
    tolerance: float | None = None,
) -> None:
    """Compare outputs one by one.

    Args:
        model: Name of the model, for the message.
        names: Names of the outputs.
        expected: What the source gave.
        found: What the exported file gave.
        tolerance: Largest difference in units of the largest number; None for what the datatype allows.

    Raises:
        ExportError: With the first output that differs, by how much, and where.
    """
    for name, want, have in zip(names, expected, found, strict=True):
        where = f"export of model '{model}': output '{name}'"
        if want.shape != have.shape:
            raise ExportError(
                f"{where} has shape {list(have.shape)} in the exported file and {list(want.shape)} in the source"
            )
        if want.dtype.kind in "OSU":
            if not np.array_equal(want.astype(str), have.astype(str)):
                raise ExportError(f"{where} differs between the exported file and the source")
            continue
        allowed = tolerance if tolerance is not None else _TOLERANCES.get(want.dtype.name, 0.0)
        _check_close(where, want, have, allowed)


def _check_close(where: str, want: np.ndarray, have: np.ndarray, allowed: float) -> None:
    left, right = want.astype(np.float64), have.astype(np.float64)
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    finite = np.isfinite(left) & np.isfinite(right)
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.where(same, 0.0, np.where(finite, np.abs(left - right), np.inf))
    worst = float(difference.max(initial=0.0))
    scale = max(1.0, float(np.abs(left[finite]).max(initial=0.0)))
    if worst > allowed * scale:
        place = tuple(int(axis) for axis in np.unravel_index(int(difference.argmax()), difference.shape))
        raise ExportError(
            f"{where} differs at {list(place)}: {left[place]:.9g} in the source, {right[place]:.9g} in the exported "
            f"file, more than {allowed:g} of the largest number ({scale:.6g}); a model that is random gives such "
            "differences; tolerance= allows more, check=False does not look"
        )
