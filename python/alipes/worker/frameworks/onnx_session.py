"""Runs ONNX files in a worker process, for formats that carry one. A repository's own run in the server, without it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from alipes.signature import ANY, Port, Signature
from alipes.worker.frameworks.opened import OpenedModel, Opening, reading

if TYPE_CHECKING:
    import numpy as np

__all__ = ["OnnxModel", "open_model"]

_DATATYPES: Final = {
    "tensor(bool)": "BOOL",
    "tensor(float16)": "FP16",
    "tensor(float)": "FP32",
    "tensor(double)": "FP64",
    "tensor(string)": "BYTES",
    **{f"tensor({kind}{bits})": f"{kind.upper()}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
}
"""ONNX Runtime's names of tensors, and ours."""


def open_model(opening: Opening) -> OnnxModel:
    """Opens an ONNX file.

    Raises:
        LoadError: If the file cannot be read, or has an input or output that is no tensor.
    """
    runtime: Any = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = opening.threads, 1
    with reading(opening):
        session = runtime.InferenceSession(str(opening.file), options, providers=["CPUExecutionProvider"])
    inputs = tuple(_port(opening, one) for one in session.get_inputs())
    return OnnxModel(session, Signature(inputs, tuple(_port(opening, one) for one in session.get_outputs())))


class OnnxModel(OpenedModel):
    """A session of ONNX Runtime."""

    def __init__(self, session: Any, signature: Signature) -> None:
        """Takes the session and its signature."""
        self.signature = signature
        self._session = session
        self._outputs = [port.name for port in signature.outputs]

    def run(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Runs one batch."""
        return dict(zip(self._outputs, self._session.run(self._outputs, dict(inputs)), strict=True))


def _port(opening: Opening, one: Any) -> Port:
    if one.type not in _DATATYPES:
        raise opening.refuse(f"its '{one.name}' is {one.type}, which clients cannot send; export the model to tensors")
    return Port(one.name, _DATATYPES[one.type], tuple(size if isinstance(size, int) else ANY for size in one.shape))
