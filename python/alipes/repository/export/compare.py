"""Whether an exported file gives the numbers of what it was made of, and what happens where it does not."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from alipes.errors import ExportError
from alipes.progress.work import current

if TYPE_CHECKING:
    from alipes.repository.export.request import ExportRequest

__all__ = ["Difference", "OnnxRun", "check_numbers", "find_difference", "judged"]

_log = logging.getLogger(__name__)

# In units of the largest number compared. What engines make of the order of sums stays well below.
_TOLERANCES: Final = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 1e-4, "float64": 1e-8}

_SMALL_BYTES: Final = 4 << 20
"""To start a thread for each core, and to end it, takes longer than to run so small a model once."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first output that an exported file gives otherwise than its source.

    Attributes:
        output: Its name.
        size: The largest difference; infinite where shapes or texts differ.
        text: What was seen, and where.
    """

    output: str
    size: float
    text: str


@contextmanager
def judged(request: ExportRequest) -> Iterator[None]:
    """What a comparison refuses ends the export, or is a line in the log where `check="warn"` was asked for."""
    try:
        yield
    except ExportError as error:
        if request.check != "warn":
            raise
        _log.warning("%s; it is published anyway", error)


class OnnxRun:
    """Runs an ONNX file, without the optimisations that would cost more than the runs.

    Attributes:
        inputs: Names of the inputs that the file has.
    """

    def __init__(self, file: Path, outputs: Sequence[str]) -> None:
        """Opens the file."""
        current().step("running the exported file")
        onnxruntime: Any = import_module("onnxruntime")
        settings = onnxruntime.SessionOptions()
        settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        settings.log_severity_level = 3
        if file.stat().st_size < _SMALL_BYTES:
            settings.intra_op_num_threads = 1
        # Threads that look out for more work take it from a machine that has other work.
        settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(str(file), settings, providers=["CPUExecutionProvider"])
        self._outputs = list(outputs)
        self.inputs = frozenset(one.name for one in self._session.get_inputs())

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The outputs, in the order of their names."""
        found: list[np.ndarray] = self._session.run(self._outputs, dict(inputs))
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
    difference = find_difference(names, expected, found, tolerance)
    if difference is not None:
        raise ExportError(
            f"export of model '{model}': {difference.text}; a source that is random gives such differences; "
            "tolerance= allows more, check=False does not compare"
        )


def find_difference(
    names: Sequence[str],
    expected: Sequence[np.ndarray],
    found: Sequence[np.ndarray],
    tolerance: float | None = None,
    *,
    slack: Sequence[float] = (),
    lenient: bool = False,
) -> Difference | None:
    """The first output that differs; None where none does.

    Args:
        names: Names of the outputs.
        expected: What the source gave.
        found: What the exported file gave.
        tolerance: Largest difference in units of the largest number; None for what the datatype allows.
        slack: What is allowed beside it, an output each.
        lenient: Whether axes of one element may come and go, and what the source gives that is no finite number does
            not count: for inputs that nobody may ever send.
    """
    if len(expected) != len(found):
        text = f"the source gives {len(expected)} outputs and the exported file {len(found)}"
        return Difference(names[0] if names else "", float("inf"), text)
    more = [*slack, *[0.0] * (len(names) - len(slack))]
    for name, want, got, allowance in zip(names, expected, found, more, strict=True):
        called = f"output '{name}'"
        have = got.reshape(want.shape) if lenient and got.size == want.size else got
        if want.shape != have.shape:
            text = f"{called} has shape {list(have.shape)} in the exported file and {list(want.shape)} in the source"
            return Difference(name, float("inf"), text)
        if want.dtype.kind in "OSU":
            if not np.array_equal(want.astype(str), have.astype(str)):
                return Difference(name, float("inf"), f"{called} differs between the exported file and the source")
            continue
        allowed = tolerance if tolerance is not None else _TOLERANCES.get(want.dtype.name, 0.0)
        difference = _far(name, want, have, allowed, allowance, finite_alone=lenient)
        if difference is not None:
            return difference
    return None


def _far(
    name: str, want: np.ndarray, have: np.ndarray, allowed: float, allowance: float, finite_alone: bool
) -> Difference | None:
    left, right = want.astype(np.float64), have.astype(np.float64)
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    if finite_alone:
        same |= ~np.isfinite(left)
    finite = np.isfinite(left) & np.isfinite(right)
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.where(same, 0.0, np.where(finite, np.abs(left - right), np.inf))
    worst = float(difference.max(initial=0.0))
    scale = max(1.0, float(np.abs(left[finite]).max(initial=0.0)))
    if worst <= allowed * scale + allowance:
        return None
    place = tuple(int(axis) for axis in np.unravel_index(int(difference.argmax()), difference.shape))
    return Difference(
        name,
        worst,
        f"output '{name}' differs at {list(place)}: {left[place]:.9g} in the source, {right[place]:.9g} in the "
        f"exported file, more than {allowed:g} of the largest number ({scale:.6g})",
    )
