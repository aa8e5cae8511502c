"""What an ONNX file says of its inputs and outputs, read without ONNX Runtime."""

from __future__ import annotations

import json

import onnx

DATATYPES = {
    onnx.TensorProto.BOOL: "BOOL",
    onnx.TensorProto.UINT8: "UINT8",
    onnx.TensorProto.UINT16: "UINT16",
    onnx.TensorProto.UINT32: "UINT32",
    onnx.TensorProto.UINT64: "UINT64",
    onnx.TensorProto.INT8: "INT8",
    onnx.TensorProto.INT16: "INT16",
    onnx.TensorProto.INT32: "INT32",
    onnx.TensorProto.INT64: "INT64",
    onnx.TensorProto.FLOAT16: "FP16",
    onnx.TensorProto.FLOAT: "FP32",
    onnx.TensorProto.DOUBLE: "FP64",
    onnx.TensorProto.STRING: "BYTES",
    onnx.TensorProto.BFLOAT16: "BF16",
}


def describe(library: str, path: str) -> str:
    """The signature as `alipes._core.OnnxProbe` gives it; ``library`` is not opened."""
    graph = onnx.load(path).graph
    constants = {constant.name for constant in graph.initializer}
    inputs = [_port(value) for value in graph.input if value.name not in constants]
    return json.dumps({"inputs": inputs, "outputs": [_port(value) for value in graph.output]})


def _port(value: onnx.ValueInfoProto) -> dict[str, object]:
    tensor = value.type.tensor_type
    shape = [size.dim_value if size.HasField("dim_value") else -1 for size in tensor.shape.dim]
    return {"name": value.name, "datatype": DATATYPES[tensor.elem_type], "shape": shape}
