"""One request of zeros before a model is ready: what can answer none would be ready and give everybody an error.

Source: files that their framework opens and cannot run, of operations that it lacks for a datatype or a rank.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from alipes.worker.frameworks.opened import Opening
    from alipes.worker.frameworks.runner import Runner

__all__ = ["try_request"]

_PARAMETER: Final = "TRIAL_REQUEST"

_ERROR: Final = re.compile(r"^\w*(?:Error|Exception): .+", re.MULTILINE)
"""How Python, and frameworks that follow it, begin the text of an error."""

_MOST_CHARACTERS: Final = 400
"""Of that line."""

_LARGEST_BYTES: Final = 256 << 20
"""Of the inputs together; nobody waits at a load for more."""


def try_request(runner: Runner, opening: Opening) -> None:
    """Ask a model that was opened once, if the configuration says how large its inputs are.

    Open sizes, texts and sequences are left out: no choice of them is one that every such model has to take.

    Raises:
        LoadError: If it answers neither zeros nor ones.
    """
    if not opening.flag(_PARAMETER, True):
        return
    shapes = _shapes(opening.config)
    if not shapes:
        return
    zeros = _error(runner, opening, shapes, 0)
    # Models that take no noughts, for instance as lengths, take ones.
    if zeros is not None and _error(runner, opening, shapes, 1) is not None:
        raise opening.refuse(
            f"it was opened, and answers no request of zeros: {zeros}; if it answers others, the parameter "
            f'{_PARAMETER} with the value "false" serves it untried'
        )


def _shapes(config: Mapping[str, Any]) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Shape and element type of each input of one row; none at all where one of them is open."""
    from alipes.worker.triton.datatypes import triton_string_to_numpy

    if config.get("sequence_batching") or config.get("batch_input"):
        return {}
    found = {}
    for tensor in config["input"]:
        sizes = tuple(int(size) for size in tensor["dims"])
        if min(sizes, default=1) < 0 or tensor["data_type"] in ("TYPE_STRING", "TYPE_BF16"):
            return {}
        batch = (1,) if config.get("max_batch_size", 0) > 0 and not tensor.get("is_shape_tensor") else ()
        found[tensor["name"]] = (*batch, *sizes), np.dtype(triton_string_to_numpy(tensor["data_type"]))
    size = sum(math.prod(shape) * kind.itemsize for shape, kind in found.values())
    return found if size <= _LARGEST_BYTES else {}


def _error(runner: Runner, opening: Opening, shapes: Mapping[str, Any], value: int) -> str | None:
    from alipes._core import InferenceRequest, Tensor

    request = InferenceRequest(
        inputs=[Tensor(name, np.full(shape, value, kind)) for name, (shape, kind) in shapes.items()],
        requested_output_names=[tensor["name"] for tensor in opening.config["output"]],
        model_name=opening.model_name,
    )
    (response,) = runner.execute([request])
    error = response.error()
    return None if error is None else _cause(error.message())


def _cause(text: str) -> str:
    """The line of a framework's text that says what is wrong: the last that an error begins, for it may name others."""
    errors = _ERROR.findall(text)
    lines = errors[-1:] or text.strip().splitlines()[:1]
    return lines[0][:_MOST_CHARACTERS] if lines else "it gives no reason"
