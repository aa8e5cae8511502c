"""Finds out what a file does not say, by running its module on zeros."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch

from alipes.signature import ANY, Port, Signature
from alipes.worker.frameworks.opened import Opening
from alipes.worker.frameworks.pytorch.binding import InputBinding
from alipes.worker.frameworks.pytorch.module import TORCH_TYPES, v2_datatype
from alipes.worker.frameworks.pytorch.nesting import RESULT, leaves

__all__ = ["probe"]

_ROWS: Final = (2, 3)
"""Sizes of the first axis, in turn, where it is open: what comes out otherwise then is open, too."""

_SIZES: Final = (64, 96)
"""Sizes of other open axes."""


def probe(opening: Opening, call: Callable[..., Any], inputs: Sequence[Port], binding: InputBinding) -> Signature:
    """Inputs and outputs of a module, with the outputs as they are seen for inputs of two sizes.

    Args:
        opening: The opening.
        call: The module.
        inputs: Its inputs.
        binding: Which argument each is.

    Raises:
        LoadError: If the module cannot run on zeros.
    """
    batches = all(port.has_batch_dimension for port in inputs)
    try:
        first = _results(call, inputs, binding, 0)
    except Exception as error:
        text = " ".join(str(error).split())[-300:]
        raise opening.refuse(
            f"the file does not say what its outputs are, and on zeros the model raises {type(error).__name__}: "
            f"{text}; list its outputs in config.pbtxt, each with name, data_type and dims"
        ) from error
    if not batches:
        return Signature(tuple(inputs), tuple(Port(name, *one) for name, one in first.items()))
    second = _results(call, inputs, binding, 1)
    return Signature(tuple(inputs), tuple(_open(name, first[name], second.get(name)) for name in first))


def batch_of(call: Callable[..., Any], examples: Sequence[Port], binding: InputBinding) -> tuple[Port, ...]:
    """What a script was traced with, the first axis open where it works for other sizes, too."""
    rows = {port.shape[:1] for port in examples}
    opened = tuple(Port(port.name, port.datatype, (ANY, *port.shape[1:])) for port in examples)
    if len(rows) != 1 or rows == {()}:
        return tuple(examples)
    try:
        results = [_results(call, opened, binding, turn) for turn in range(len(_ROWS))]
    except Exception:
        return tuple(examples)
    follows = all(shape[:1] == (_ROWS[turn],) for turn, found in enumerate(results) for _, shape in found.values())
    return opened if follows else tuple(examples)


def _results(
    call: Callable[..., Any], inputs: Sequence[Port], binding: InputBinding, turn: int
) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Datatype and shape of each result, by the names that results have."""
    values = {port.name: _zeros(port, turn) for port in inputs}
    arguments, named = binding.arguments(values)
    with torch.no_grad():
        found = call(*arguments, **named)
    pairs = _named(found)
    wrong = next((one for _, one in pairs if not isinstance(one, torch.Tensor)), None)
    if wrong is not None:
        raise TypeError(f"a result is a {type(wrong).__name__}, expected a tensor")
    return {str(name): (v2_datatype(one.dtype), tuple(one.shape)) for name, one in pairs}


def _named(found: Any) -> list[tuple[str, Any]]:
    """What each result is called: its key in a flat dictionary, Triton's path where results nest, else its number."""
    by_path = list(leaves(found))
    if any(path.count("[") > 1 for path, _ in by_path):
        return [(f"{RESULT}{path}", one) for path, one in by_path]
    if isinstance(found, Mapping):
        return [(path[1:-1], one) for path, one in by_path]
    return [(f"OUTPUT__{at}", one) for at, (_, one) in enumerate(by_path)]


def _zeros(port: Port, turn: int) -> torch.Tensor:
    first, rest = port.shape[:1], port.shape[1:]
    sizes = [_ROWS[turn] if size == ANY else size for size in first]
    return torch.zeros(
        [*sizes, *(_SIZES[turn] if size == ANY else size for size in rest)], dtype=TORCH_TYPES[port.datatype]
    )


def _open(name: str, one: tuple[str, tuple[int, ...]], other: tuple[str, tuple[int, ...]] | None) -> Port:
    datatype, shape = one
    if other is None or len(other[1]) != len(shape):
        return Port(name, datatype, shape)
    return Port(name, datatype, tuple(a if a == b else ANY for a, b in zip(shape, other[1], strict=True)))
