"""Small ONNX models with names of the test's choice, for repositories that are written rather than served."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# The oldest format that every ONNX Runtime in use reads.
_IR_VERSION = 8
_OPSET = 17


def scaled(
    source: str = "x",
    result: str = "y",
    *,
    columns: int | str = 4,
    factor: float = 2.0,
    datatype: int = TensorProto.FLOAT,
    batch: int | str = "batch",
) -> onnx.ModelProto:
    """``result = factor * source``, of shape ``[batch, columns]``."""
    shape = [batch, columns]
    constant = numpy_helper.from_array(np.array(factor, helper.tensor_dtype_to_np_dtype(datatype)), "factor")
    return _model(
        [helper.make_node("Mul", [source, "factor"], [result])],
        [helper.make_tensor_value_info(source, datatype, shape)],
        [helper.make_tensor_value_info(result, datatype, shape)],
        [constant],
    )


def added(left: str = "a", right: str = "b", result: str = "sum", *, columns: int = 4) -> onnx.ModelProto:
    """``result = left + right``, of shape ``[batch, columns]``."""
    shape = ["batch", columns]
    return _model(
        [helper.make_node("Add", [left, right], [result])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in (left, right)],
        [helper.make_tensor_value_info(result, TensorProto.FLOAT, shape)],
        [],
    )


def _model(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    constants: list[onnx.TensorProto],
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "graph", inputs, outputs, constants)
    return helper.make_model(graph, ir_version=_IR_VERSION, opset_imports=[helper.make_opsetid("", _OPSET)])
