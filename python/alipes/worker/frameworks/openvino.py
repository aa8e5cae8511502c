"""Runs OpenVINO's models: the format of its own, which is a graph in `.xml` and weights in `.bin`, and ONNX.

Inputs are views of the request's memory, outputs views of an inference request's: see `_InferRequests`.
Source: the parameters of Triton's OpenVINO backend, which the names of ours are from.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from alipes.signature import ANY, Port, Signature
from alipes.worker.frameworks.opened import OpenedModel, Opening, reading
from alipes.worker.frameworks.openvino_texts import read_texts, text_tensor

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["OpenvinoModel", "open_model"]

openvino: Any = import_module("openvino")  # by name, since type checkers need not have it

_DATATYPES: Final = {
    "boolean": "BOOL",
    "f16": "FP16",
    "f32": "FP32",
    "f64": "FP64",
    "string": "BYTES",
    **{f"i{bits}": f"INT{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"UINT{bits}" for bits in (8, 16, 32, 64)},
}
"""OpenVINO's names of element types, and ours."""

_DEVICE: Final = "CPU"
_HINTS: Final = ("LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT")
_HEAD_BYTES: Final = 4096  # of an `.xml`, within which its format's version stands
_KNOWN_VERSION: Final = 11  # of the format, from OpenVINO 2022.1 on


def open_model(opening: Opening) -> OpenvinoModel:
    """Reads and compiles a model.

    Raises:
        LoadError: If the file cannot be read, has an element type that clients cannot send, or a parameter is wrong.
    """
    core = openvino.Core()
    device = _device(opening, core)
    properties = _properties(opening, device)
    model = _read(opening, core)
    if opening.config.get("max_batch_size", 0) > 0:
        _open_rows(opening, model)
    signature = _signature(opening, model)
    with reading(opening):
        return OpenvinoModel(core.compile_model(model, device, properties), signature)


class OpenvinoModel(OpenedModel):
    """A compiled model.

    Attributes:
        compiled: What OpenVINO runs.
    """

    steps = True

    def __init__(self, compiled: Any, signature: Signature) -> None:
        """Takes the compiled model, whose inputs and outputs are in the signature's order."""
        self.signature = signature
        self.compiled = compiled
        self._inputs = [port.name for port in signature.inputs]
        self._outputs = [port.name for port in signature.outputs]
        self._requests = _InferRequests(compiled, [port.datatype == "BYTES" for port in signature.outputs])
        variables = self._requests.variables()
        self.hidden = f"variables of ReadValue and Assign: {', '.join(variables)}" if variables else ""

    def run(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Runs one batch on an inference request that no answer refers to any more."""
        found = self._requests.infer(self._values(inputs))
        return dict(zip(self._outputs, found, strict=True))

    def step(self, inputs: Mapping[str, np.ndarray], state: Any) -> tuple[Mapping[str, np.ndarray], Any]:
        """Runs one batch from a state: the values of the variables by name, or what they begin with."""
        found, after = self._requests.step(self._values(inputs), state)
        return dict(zip(self._outputs, found, strict=True)), after

    def _values(self, inputs: Mapping[str, np.ndarray]) -> dict[int, Any]:
        """What OpenVINO is given, by position: arrays, and its own tensors for texts."""
        arrays = [inputs[name] for name in self._inputs]
        return {at: text_tensor(one) if one.dtype == object else one for at, one in enumerate(arrays)}


class _InferRequests:
    """Inference requests, each of which owns the memory of its outputs.

    Outputs are not copied here: their arrays are views of that memory, which the next inference overwrites. So a
    request is used again once the last array of its outputs is gone. There are as many as answers under way.
    """

    def __init__(self, compiled: Any, texts: Sequence[bool]) -> None:
        """Takes the compiled model, and whether each of its outputs has texts."""
        self._compiled = compiled
        self._texts = texts
        self._free: list[Any] = []

    def variables(self) -> list[str]:
        """The names of what an inference request keeps from one inference to the next."""
        request = self._take()
        self._free.append(request)
        return sorted(one.name for one in request.query_state())

    def step(self, inputs: Mapping[int, Any], state: Any) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
        """The outputs for one batch, and the values of the variables after it, from those before it."""
        request = self._take()
        variables = request.query_state()
        for one in variables:
            if state is None:
                one.reset()
            else:
                one.state = openvino.Tensor(state[one.name])
        outputs = self._outputs(request, inputs)
        return outputs, {one.name: np.array(one.state.data) for one in variables}

    def infer(self, inputs: Mapping[int, Any]) -> list[np.ndarray]:
        """The outputs for one batch."""
        return self._outputs(self._take(), inputs)

    def _take(self) -> Any:
        return self._free.pop() if self._free else self._compiled.create_infer_request()

    def _outputs(self, request: Any, inputs: Mapping[int, Any]) -> list[np.ndarray]:
        if any(self._texts):
            return self._copies(request, inputs)
        outputs = list(request.infer(inputs, share_inputs=True, share_outputs=True).values())
        left = [len(outputs)]
        for output in outputs:
            weakref.finalize(output, self._let_go, request, left).atexit = False
        return outputs

    def _copies(self, request: Any, inputs: Mapping[int, Any]) -> list[np.ndarray]:
        """The outputs of a model with texts, which are not read as views."""
        request.start_async(inputs, share_inputs=True)
        request.wait()
        tensors = [request.get_output_tensor(at) for at in range(len(self._texts))]
        outputs = [
            read_texts(tensor) if has_texts else np.array(tensor.data)
            for tensor, has_texts in zip(tensors, self._texts, strict=True)
        ]
        self._free.append(request)
        return outputs

    def _let_go(self, request: Any, left: list[int]) -> None:
        left[0] -= 1
        if not left[0]:
            self._free.append(request)


def _device(opening: Opening, core: Any) -> str:
    """The device that the configuration names, `CPU` where it names none."""
    device = opening.parameter("TARGET_DEVICE", _DEVICE)
    known = list(core.available_devices)
    if device.partition(".")[0] not in {one.partition(".")[0] for one in known}:
        raise opening.refuse(f"parameter TARGET_DEVICE is '{device}', OpenVINO finds here: {', '.join(known)}")
    return device


def _properties(opening: Opening, device: str) -> dict[str, Any]:
    """What the device is told: one stream, since an instance runs one batch at a time, and this instance's threads.

    Only processors know threads.
    """
    hint = opening.parameter("PERFORMANCE_HINT", _HINTS[0]).upper()
    if hint not in _HINTS:
        raise opening.refuse(f"parameter PERFORMANCE_HINT must be one of {', '.join(_HINTS)}, got '{hint}'")
    if device.partition(".")[0] != _DEVICE:
        return {"PERFORMANCE_HINT": hint}
    properties = {
        "PERFORMANCE_HINT": hint,
        "INFERENCE_NUM_THREADS": opening.number("INFERENCE_NUM_THREADS", opening.threads),
        "ENABLE_CPU_PINNING": False,  # instances are processes apart, which it would bind to the same cores
    }
    if opening.parameter("NUM_STREAMS") or hint == _HINTS[0]:
        properties["NUM_STREAMS"] = opening.number("NUM_STREAMS", 1)
    if opening.parameter("HINT_BF16").upper() != "YES":
        properties["INFERENCE_PRECISION_HINT"] = "f32"  # some processors would take bfloat16, and round
    return properties


def _read(opening: Opening, core: Any) -> Any:
    """The model as the file has it; OpenVINO's own words for what is wrong with an `.xml` would not tell.

    Raises:
        LoadError: If the file cannot be read, is of a newer format, or lies there without its weights.
    """
    file = opening.file
    version = _format_version(file) if file.suffix == ".xml" else _KNOWN_VERSION
    if version is None:
        raise opening.refuse("it is no model of OpenVINO, whose .xml begins with <net; save the model again")
    if file.suffix == ".xml" and not file.with_suffix(".bin").is_file():
        raise opening.refuse(f"its weights are missing: put {file.stem}.bin beside it")
    with reading(opening):
        try:
            return core.read_model(str(file))
        except RuntimeError as error:
            if version <= _KNOWN_VERSION:
                raise
            release = openvino.__version__.partition("-")[0]
            raise opening.refuse(
                f"its format is version {version}, which openvino {release} does not read: update openvino, or save "
                "the model with the installed one"
            ) from error


def _format_version(file: Path) -> int | None:
    with file.open("rb") as opened:
        found = re.search(rb'<net\b[^>]*\bversion="(\d{1,6})"', opened.read(_HEAD_BYTES))
    return int(found[1]) if found is not None else None


def _open_rows(opening: Opening, model: Any) -> None:
    """Lets axis 0 of every input have any size, where the configuration asks for batches and the file has one row.

    Raises:
        LoadError: If the graph holds on to its size.
    """
    shapes = {port: port.partial_shape for port in model.inputs}
    if not any(shape.rank.is_static and len(shape) and shape[0].is_static for shape in shapes.values()):
        return
    for shape in shapes.values():
        if shape.rank.is_static and len(shape):
            shape[0] = openvino.Dimension(-1)
    try:
        model.reshape(shapes)
    except RuntimeError as error:
        text = " ".join(str(error).split())[-300:]
        raise opening.refuse(
            f"axis 0 of its inputs has a fixed size, and OpenVINO cannot open it ({text}); set max_batch_size to 0"
        ) from error


def _signature(opening: Opening, model: Any) -> Signature:
    inputs = tuple(_port(opening, "input", port, port.get_node()) for port in model.inputs)
    outputs = tuple(_port(opening, "output", port, _source(port)) for port in model.outputs)
    return Signature(inputs, outputs)


def _source(output: Any) -> Any:
    """The operation behind a result, which is what a nameless output is called by."""
    return output.get_node().input(0).get_source_output().get_node()


def _port(opening: Opening, side: str, port: Any, node: Any) -> Port:
    name = node.friendly_name if node.friendly_name in port.names or not port.names else min(port.names)
    kind = port.element_type.get_type_name()
    if kind not in _DATATYPES:
        raise opening.refuse(
            f"its {side} '{name}' has element type {kind}, which clients cannot send; convert it to f32 or i64"
        )
    shape = port.partial_shape
    if shape.rank.is_dynamic:
        raise opening.refuse(f"its {side} '{name}' has no fixed number of dimensions; give the model a shape")
    if kind == "string" and shape.rank.get_length() == 0:
        raise opening.refuse(f"its {side} '{name}' is one text without axes; give it an axis of size 1")
    return Port(name, _DATATYPES[kind], tuple(size.get_length() if size.is_static else ANY for size in shape))
