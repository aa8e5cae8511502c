"""What is explained: a predictor or a function, asked for the outputs of many perturbed inputs in batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from alipes.errors import Cancelled, ConfigError, DeadlineExceeded, Internal
from alipes.explainers.limits import LimitReached, Meter
from alipes.predictor.predictor import Predictor
from alipes.worker.apps.callers import has_left

__all__ = ["Evaluator", "Source", "source_of"]

Array = npt.NDArray[Any]

_DEFAULT_ROWS: Final = 64
"""Rows of a batch where the predictor names no number."""
_MOST_AXES: Final = 2


class Source(Protocol):
    """What is explained."""

    def batch_size(self) -> int:
        """Rows that one call may have."""

    def outputs(self, rows: Array, limit_s: float) -> Array:
        """The output of each row.

        Args:
            rows: The rows.
            limit_s: Time for the call in seconds.

        Raises:
            InferError: If the predictor does not answer.
        """


class _PredictorSource:
    def __init__(self, predictor: Predictor, input_name: str, output_name: str) -> None:
        self._predictor, self._input, self._output = predictor, input_name, output_name
        self._declared: tuple[int, int | None] | None = None

    def batch_size(self) -> int:
        return self._looked_up()[0] or _DEFAULT_ROWS

    def outputs(self, rows: Array, limit_s: float) -> Array:
        if rows.ndim + 1 == self._looked_up()[1]:  # a text, or a number, is an axis of one element in most models
            rows = rows[..., None]
        inputs = {self._input: rows} if self._input else rows
        wanted = [self._output] if self._output else None
        found = self._predictor.infer(inputs, outputs=wanted, timeout_s=limit_s)
        if not isinstance(found, Mapping):
            return np.asarray(found)
        if self._output:
            return np.asarray(found[self._output])
        if len(found) == 1:
            return np.asarray(next(iter(found.values())))
        raise ConfigError(f"name the output that is explained, as in output={min(found)!r}: there are {sorted(found)}")

    def _looked_up(self) -> tuple[int, int | None]:
        """Rows of a call, and axes of the input, as the predictor declares them."""
        if self._declared is None:
            self._declared = self._predictor.max_batch_size(), self._predictor.input_axes(self._input)
        return self._declared


class _FunctionSource:
    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def batch_size(self) -> int:
        return _DEFAULT_ROWS

    def outputs(self, rows: Array, limit_s: float) -> Array:
        del limit_s  # a function cannot be ended
        if has_left():
            raise Cancelled("the caller has left")
        return np.asarray(self._function(rows))


def source_of(predictor: Predictor | Callable[[Any], Any], input_name: str, output_name: str) -> Source:
    """What is asked for outputs.

    Args:
        predictor: A handle, or a function of rows that returns an output for each.
        input_name: The input of the predictor; empty where it has one.
        output_name: The output that is explained; empty where it has one.

    Raises:
        ConfigError: If it is neither.
    """
    if isinstance(predictor, Predictor):
        return _PredictorSource(predictor, input_name, output_name)
    if not callable(predictor):
        raise ConfigError(f"an explainer needs an alipes.Predictor or a function, got a {type(predictor).__name__}")
    if input_name or output_name:
        raise ConfigError("input= and output= name tensors of a predictor: a function takes rows and returns outputs")
    return _FunctionSource(predictor)


class Evaluator:
    """The outputs of any number of rows, in batches, within the limits of one request."""

    def __init__(self, source: Source, meter: Meter, batch_size: int | None = None) -> None:
        """Takes what is asked.

        Args:
            source: What is asked.
            meter: Counts the calls.
            batch_size: Rows of a call; left out, as many as the predictor takes.
        """
        self._source, self._meter = source, meter
        self._rows = batch_size

    def __call__(self, rows: Array) -> npt.NDArray[np.float64]:
        """The outputs, a row of numbers for each row.

        Raises:
            LimitReached: If seconds or calls are used up.
            InferError: If the predictor does not answer.
        """
        size = self.batch_size
        return np.concatenate([self._batch(rows[start : start + size]) for start in range(0, len(rows), size)])

    @property
    def batch_size(self) -> int:
        """Rows of a call."""
        if self._rows is None:
            self._rows = self._source.batch_size()
        return self._rows

    def _batch(self, rows: Array) -> npt.NDArray[np.float64]:
        self._meter.count_call()
        try:
            found = self._source.outputs(rows, max(self._meter.left_s, 0.001))
        except DeadlineExceeded as error:
            if self._meter.left_s <= 0:
                raise LimitReached from error
            raise
        return _as_numbers(found, len(rows))


def _as_numbers(found: Array, rows: int) -> npt.NDArray[np.float64]:
    """Outputs as numbers, a row of them for each row.

    Raises:
        Internal: If they are none, or have another number of rows.
    """
    if found.dtype.kind not in "biuf" or found.ndim == 0 or len(found) != rows or found.ndim > _MOST_AXES:
        shape = f"{found.dtype.name} of shape {list(found.shape)}"
        raise Internal(f"an explanation needs one number, or a list of them, for each of {rows} rows: got {shape}")
    numbers = found.astype(np.float64)
    return numbers[:, None] if numbers.ndim == 1 else numbers
