"""A Python function on numpy arrays as a model of the Python backend."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar, Final

import numpy as np

from alipes.config.datatypes import numpy_name
from alipes.errors import ExportError
from alipes.repository.declare import declare
from alipes.repository.export.compare import check_numbers, judged
from alipes.repository.export.exporter import Exporter
from alipes.repository.export.python_source import function_source
from alipes.repository.export.request import ExportRequest
from alipes.repository.platform import Platform, conventions
from alipes.repository.tensors import Shape, describe_shape, model_shape

__all__ = ["PythonFunction"]

_ARRAYS: Final = "arrays.npz"

_MODEL: Final = '''
import numpy
import triton_python_backend_utils as pb_utils

_INPUTS = {inputs!r}
_OUTPUTS = {outputs!r}


class TritonPythonModel:
    """Calls the function above once a request, with its inputs as numpy arrays."""

    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        try:
            arrays = {{
                argument: pb_utils.get_input_tensor_by_name(request, name).as_numpy()
                for argument, name in _INPUTS.items()
            }}
            found = {function}(**arrays)
            values = list(found.values()) if isinstance(found, dict) else found
            values = values if isinstance(values, (list, tuple)) else [values]
            tensors = [
                pb_utils.Tensor(name, numpy.ascontiguousarray(value, dtype=kind))
                for (name, kind), value in zip(_OUTPUTS.items(), values, strict=True)
            ]
        except Exception as error:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(f"{{type(error).__name__}}: {{error}}"))
        return pb_utils.InferenceResponse(tensors)
'''


class PythonFunction(Exporter):
    """Writes a function that takes and gives numpy arrays as a `model.py` of its own.

    The functions, modules, constants and arrays that it uses are written with it. It runs in a worker process.
    """

    platform: ClassVar[Platform] = Platform.PYTHON

    @classmethod
    def handles(cls, source: Any) -> bool:
        """Plain functions."""
        return isinstance(source, FunctionType)

    def export(self, source: FunctionType, request: ExportRequest) -> None:
        """Copies the function out of its module, calls the copy, and writes the model around it."""
        extracted = function_source(source)
        arguments = _arguments(source)
        shapes = request.input_shapes
        if shapes is not None and not isinstance(shapes, Mapping):
            shapes = dict(zip(arguments, shapes, strict=False))
        declare(request.config._proto, "input", shapes, request.input_dtypes or {})
        inputs = _bind(request, arguments)
        if extracted.arrays:
            np.savez(request.folder / _ARRAYS, **extracted.arrays)  # type: ignore[arg-type]
        file = request.folder / conventions[self.platform]
        text = extracted.text(_ARRAYS)
        samples = _samples(request, inputs, rows=2)
        others = _samples(request, inputs, rows=3)
        results, other_results = _call(source, samples), _call(source, others)
        _declare_outputs(request, results, other_results)
        outputs = {tensor.name: _numpy_name(tensor.data_type) for tensor in request.config.output}
        if request.check:
            found = _call(_load(text, source.__name__, file), others)
            with judged(request):
                check_numbers(request.config.name, list(outputs), other_results, found, request.tolerance)
        model = _MODEL.format(inputs=inputs, outputs=outputs, function=source.__name__)
        head = f'"""Written by alipes.repository from the function {source.__name__}."""\n\n'
        file.write_text(head + text + model, encoding="utf-8")


def _arguments(function: FunctionType) -> list[str]:
    kinds = inspect.Parameter
    return [
        one.name
        for one in inspect.signature(function).parameters.values()
        if one.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)
    ]


def _bind(request: ExportRequest, arguments: Sequence[str]) -> dict[str, str]:
    """Argument -> input: by name where all names are arguments, else as they are declared."""
    names = [tensor.name for tensor in request.config.input]
    if set(names) <= set(arguments):
        return {name: name for name in names}
    if len(names) > len(arguments):
        raise ExportError(
            f"export of model '{request.config.name}': {len(names)} inputs, {', '.join(names)}, for a function of "
            f"{len(arguments)} arguments, {', '.join(arguments)}"
        )
    return dict(zip(arguments, names, strict=False))


def _samples(request: ExportRequest, inputs: Mapping[str, str], rows: int) -> dict[str, np.ndarray]:
    config = request.config
    declared = {tensor.name: tensor for tensor in config.input}
    wanted = request.examples or {}
    examples = dict(wanted) if isinstance(wanted, Mapping) else dict(zip(inputs.values(), wanted, strict=False))
    rows = min(rows, config.max_batch_size or rows)
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


def _call(function: Callable[..., Any], arguments: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    found = function(**arguments)
    values = list(found.values()) if isinstance(found, Mapping) else found
    return [np.asarray(one) for one in (values if isinstance(values, list | tuple) else [values])]


def _declare_outputs(request: ExportRequest, results: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> None:
    config = request.config
    names = list(request.output_names or [tensor.name for tensor in config.output])
    names = names or [f"output_{index}" for index in range(len(results))]
    if not len(names) == len(results) == len(others):
        raise ExportError(f"export of model '{config.name}': {len(names)} output names for {len(results)} outputs")
    shapes, types = {}, {}
    for name, one, other in zip(names, results, others, strict=True):
        if one.ndim != other.ndim:
            raise ExportError(f"export of model '{config.name}': output '{name}' has axes that come and go")
        shapes[name] = [size if size == now else None for size, now in zip(one.shape, other.shape, strict=True)]
        types[name] = "BYTES" if one.dtype.kind in "OSU" else one.dtype.name
    declare(config._proto, "output", shapes, types)


def _load(text: str, name: str, file: Path) -> Callable[..., Any]:
    """The function as its file will define it."""
    space: dict[str, Any] = {"__file__": str(file), "__name__": "model"}
    exec(compile(text, str(file), "exec"), space)  # our own text, made of the caller's function
    function: Callable[..., Any] = space[name]
    return function


def _numpy_name(datatype: int) -> str:
    name = numpy_name(datatype)
    if name is None:
        raise ExportError("numpy has no bfloat16: take FP32")
    return name
