"""A Python function that takes and gives numpy arrays: what its model declares comes from shapes and from calls."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Final

import numpy as np

from alipes.config.datatypes import numpy_name
from alipes.errors import ExportError
from alipes.repository.declare import declare
from alipes.repository.export.compare import check_numbers, judged
from alipes.repository.export.request import ExportRequest
from alipes.repository.export.rows import why_not_joined
from alipes.repository.tensors import Shape, describe_shape, model_shape

__all__ = ["ArrayFunction"]

_log = logging.getLogger(__name__)

_ROWS: Final = 3


@dataclass(frozen=True, slots=True)
class ArrayFunction:
    """A function whose arguments and results are the declared tensors, as arrays.

    Attributes:
        inputs: Argument -> the input that it gets.
        why_alone: Why requests are not joined to one call where the model batches; None where they are.
    """

    inputs: Mapping[str, str]
    why_alone: str | None

    @classmethod
    def declared(cls, source: FunctionType, copy: Callable[..., Any], request: ExportRequest) -> ArrayFunction:
        """Calls the function, and declares its inputs and outputs.

        Args:
            source: The function.
            copy: The function as it was written, which is held against the function itself.
            request: The export, whose configuration gets the declarations.

        Raises:
            ExportError: If shapes, names and function do not fit together, or the copy gives other numbers.
        """
        arguments = _arguments(source)
        _declare_inputs(request, list(arguments))
        inputs = _bind(request, arguments)
        left_out = {name for argument, name in inputs.items() if not arguments[argument]}
        for tensor in request.config._proto.input:
            tensor.optional = tensor.optional or tensor.name in left_out
        most = request.config.max_batch_size
        others = _samples(request, inputs, rows=min(_ROWS, most or _ROWS))
        results, other_results = _call(source, _samples(request, inputs, rows=min(2, most or 2))), _call(source, others)
        outputs = _declare_outputs(request, results, other_results)
        if request.check:
            found = _ordered(_call(copy, others), outputs)
            with judged(request):
                expected = _ordered(other_results, outputs)
                check_numbers(request.config.name, outputs, expected, found, request.tolerance)
        return cls(inputs, _why_alone(source, request, inputs))


def _why_alone(source: FunctionType, request: ExportRequest, inputs: Mapping[str, str]) -> str | None:
    """Why the function is called once a request even where the model batches; None where requests are joined."""
    config = request.config
    if any(model_shape(config._proto, tensor)[:1] != (None,) for tensor in (*config.input, *config.output)):
        return "its tensors have no batch axis"
    outputs = [tensor.name for tensor in config.output]
    samples = {inputs[argument]: sample for argument, sample in _samples(request, inputs, rows=_ROWS).items()}
    reason = why_not_joined(
        request,
        lambda arrays: _ordered(_call(source, {one: arrays[name] for one, name in inputs.items()}), outputs),
        samples,
    )
    if reason is not None and config.max_batch_size > 1:
        _log.warning("model '%s': function '%s' is called once a request: %s", config.name, source.__name__, reason)
    return reason


def _arguments(function: FunctionType) -> dict[str, bool]:
    """The arguments of a function, each with whether it has to be given."""
    kinds = inspect.Parameter
    return {
        one.name: one.default is kinds.empty
        for one in inspect.signature(function).parameters.values()
        if one.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)
    }


def _declare_inputs(request: ExportRequest, arguments: Sequence[str]) -> None:
    shapes = request.input_shapes
    if shapes is None and not request.config.input:
        example = ", ".join(f"'{name}': (None, 64)" for name in arguments)
        raise ExportError(
            f"Must specify input shapes: model '{request.config.name}' has no inputs yet; such as "
            f"input_shapes={{{example}}}, where None is the batch; or annotate the arguments"
        )
    if shapes is not None and not isinstance(shapes, Mapping):
        shapes = dict(zip(arguments, shapes, strict=False))
    declare(request.config._proto, "input", shapes, request.input_dtypes or {})


def _bind(request: ExportRequest, arguments: Mapping[str, bool]) -> dict[str, str]:
    """Argument -> input: by name where all names are arguments, else as they are declared."""
    names = [tensor.name for tensor in request.config.input]
    if len(names) > len(arguments):
        raise ExportError(
            f"export of model '{request.config.name}': {len(names)} inputs, {', '.join(names)}, for a function of "
            f"{len(arguments)} arguments, {', '.join(arguments)}"
        )
    by_name = set(names) <= set(arguments)
    bound = {name: name for name in names} if by_name else dict(zip(arguments, names, strict=False))
    missing = [name for name, needed in arguments.items() if needed and name not in bound]
    if missing:
        raise ExportError(
            f"export of model '{request.config.name}': the function takes {', '.join(map(repr, arguments))}, and "
            f"'{missing[0]}' gets no input; input_shapes names {', '.join(map(repr, names))}"
        )
    return bound


def _samples(request: ExportRequest, inputs: Mapping[str, str], rows: int) -> dict[str, np.ndarray]:
    config = request.config
    declared = {tensor.name: tensor for tensor in config.input}
    wanted = request.examples or {}
    examples = dict(wanted) if isinstance(wanted, Mapping) else dict(zip(inputs.values(), wanted, strict=False))
    found = {}
    for argument, name in inputs.items():
        tensor = declared[name]
        found[argument] = _sample(name, model_shape(config._proto, tensor), tensor.data_type, examples.get(name), rows)
    return found


def _sample(name: str, shape: Shape, datatype: int, example: Any, rows: int) -> np.ndarray:
    kind = _numpy_name(datatype)
    if example is not None:
        array = np.asarray(example).astype(kind)
        return np.resize(array, (rows, *array.shape[1:])) if shape[:1] == (None,) and array.size else array
    if None in shape[1:]:
        raise ExportError(
            f"input '{name}' has shape {describe_shape(shape)}: a size beside the batch is variable, so an example is "
            f"needed: examples={{'{name}': array}}"
        )
    sizes = [rows if size is None else size for size in shape]
    if kind == "object":
        return np.full(sizes, b"text", object)
    return np.random.default_rng(rows).random(sizes).round(3).astype(kind)


def _call(function: Callable[..., Any], arguments: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What a function returns, by the keys of its dictionary or by numbers."""
    found = function(**arguments)
    if isinstance(found, Mapping):
        return {str(name): np.asarray(one) for name, one in found.items()}
    values = found if isinstance(found, list | tuple) else [found]
    if any(one is None for one in values):
        raise ExportError(f"function '{function.__name__}' returns None where an array is expected")
    return {f"output_{index}": np.asarray(one) for index, one in enumerate(values)}


def _ordered(results: Mapping[str, np.ndarray], names: Sequence[str]) -> list[np.ndarray]:
    """Results in the order of outputs: by name where all names are keys, else as they come."""
    return [results[name] for name in names] if set(names) == set(results) else list(results.values())


def _declare_outputs(
    request: ExportRequest, results: Mapping[str, np.ndarray], others: Mapping[str, np.ndarray]
) -> list[str]:
    """Declares the outputs; gives their names."""
    config = request.config
    names = list(request.output_names or [tensor.name for tensor in config.output] or results)
    if not len(names) == len(results) == len(others):
        raise ExportError(f"export of model '{config.name}': {len(names)} output names for {len(results)} outputs")
    shapes, types = {}, {}
    for name, one, other in zip(names, _ordered(results, names), _ordered(others, names), strict=True):
        if one.ndim != other.ndim:
            raise ExportError(f"export of model '{config.name}': output '{name}' has a number of axes that varies")
        shape = [size if size == now else None for size, now in zip(one.shape, other.shape, strict=True)]
        # Where few rows are allowed, both samples may have the same number of them.
        shapes[name] = [None, *shape[1:]] if shape and 0 < config.max_batch_size < _ROWS else shape
        types[name] = "BYTES" if one.dtype.kind in "OSU" else one.dtype.name
    declare(config._proto, "output", shapes, types)
    for tensor in config.output:
        _numpy_name(tensor.data_type)
    return names


def _numpy_name(datatype: int) -> str:
    name = numpy_name(datatype)
    if name is None:
        raise ExportError("numpy has no bfloat16: take FP32")
    return name
