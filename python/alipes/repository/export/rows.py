"""Whether a model gives the same for a row whatever other rows are in the call, so that requests can be joined.

Nobody can say so but the model itself: it is called on several rows together and on each alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from alipes.config.datatypes import v2_name
from alipes.errors import ExportError
from alipes.repository.export.compare import find_difference, judged
from alipes.repository.export.request import ExportRequest
from alipes.repository.tensors import model_shape
from alipes.row_proof import prove_rows
from alipes.signature import ANY, Port, Signature

__all__ = ["check_rows", "why_not_joined"]

Call: TypeAlias = "Callable[[Mapping[str, np.ndarray]], Sequence[np.ndarray]]"
"""Gives the outputs for arrays by name, in the order of the configuration."""

_ROWS: Final = 3

_LONGEST_S: Final = 5.0
"""Nobody waits longer for random rows; the samples have been compared by then."""

# What each row of a sample is multiplied by, so that rows differ much where a sample's are alike.
_FACTORS: Final = (1.0, -2.0, 0.5)


def check_rows(request: ExportRequest, call: Call) -> None:
    """Refuse a model whose requests would be run together although its rows depend on each other.

    Args:
        request: The export; its configuration declares inputs and outputs by now.
        call: Calls the model; arrays by the names of inputs.

    Raises:
        ExportError: If they do, and requests are joined.
    """
    config = request.config
    if not request.check or config.max_batch_size < 2 or not config.HasField("dynamic_batching"):
        return
    reason = _refutation(request, call)
    if not reason:
        return
    with judged(request):
        raise ExportError(
            f"export of model '{config.name}': with max_batch_size {config.max_batch_size}, requests of several "
            f"clients are run together, but {reason}; leave max_batch_size out"
        )


def why_not_joined(request: ExportRequest, call: Call, samples: Mapping[str, np.ndarray]) -> str | None:
    """Compare calls of a function on several rows with calls on each of them.

    Args:
        request: The export; its configuration declares inputs and outputs by now.
        call: Calls the function; arrays by the names of inputs.
        samples: Inputs of three rows each.

    Returns:
        Why requests must not be joined to one call; None where they may be.
    """
    outputs = [tensor.name for tensor in request.config.output]
    return _difference(call, samples, outputs, request.tolerance) or _refutation(request, call) or None


def _refutation(request: ExportRequest, call: Call) -> str:
    """How random rows show that they depend on each other; empty where they do not, or cannot be sent."""
    config = request.config
    names = [tensor.name for tensor in config.output]

    def run(arrays: dict[str, Any]) -> dict[str, Any]:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return dict(zip(names, call(arrays), strict=True))

    sides = (tuple(_port(request, tensor) for tensor in side) for side in (config.input, config.output))
    proof = prove_rows(run, Signature(*sides), longest_s=_LONGEST_S)
    return proof.reason if proof.outcome == "refuted" else ""


def _port(request: ExportRequest, tensor: Any) -> Port:
    shape = model_shape(request.config._proto, tensor)
    return Port(tensor.name, v2_name(tensor.data_type), tuple(ANY if size is None else size for size in shape))


def _difference(
    call: Call, samples: Mapping[str, np.ndarray], outputs: Sequence[str], tolerance: float | None
) -> str | None:
    """What the samples show: they are numbers that the function is meant for."""
    seen = False
    for arrays in _candidates(samples):
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                joint = call(arrays)
                alone = [call({name: array[at : at + 1] for name, array in arrays.items()}) for at in range(_ROWS)]
        except Exception:
            # Numbers that the function does not take say nothing about its rows.
            continue
        if any(one.shape[:1] != (_ROWS,) for one in joint) or any(
            one.shape[:1] != (1,) for each in alone for one in each
        ):
            return "it returns another number of rows than it gets"
        parts = [np.concatenate(rows) for rows in zip(*alone, strict=True)]
        difference = find_difference(outputs, joint, parts, tolerance)
        if difference is not None:
            return f"what it returns for a row depends on the other rows of the call (output '{difference.output}')"
        seen = True
    return None if seen else "it could not be called on single rows"


def _candidates(samples: Mapping[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    """The samples themselves, then some whose rows differ more."""
    yield dict(samples)
    yield {name: _varied(array) for name, array in samples.items()}


def _varied(array: np.ndarray) -> np.ndarray:
    column = (-1, *(1,) * (array.ndim - 1))
    kind: Any = array.dtype
    if kind.kind == "f":
        shifted = array + np.linspace(0.25, 1.0, array.size).reshape(array.shape)
        varied: np.ndarray = (shifted * np.reshape(_FACTORS, column)).astype(kind)
        return varied
    if kind.kind in "iu":
        return np.random.default_rng(_ROWS).integers(0, 10, array.shape).astype(kind)
    if kind.kind == "O":
        repeated = [value * (at % _ROWS + 1) for at, value in enumerate(array.flat)]
        return np.array(repeated, object).reshape(array.shape)
    return array
