"""The models of the recorded runs of perf_analyzer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from support.models import add_model, small_model

_MLP = """
backend: "onnxruntime"
max_batch_size: 64
input [ { name: "x" data_type: TYPE_FP32 dims: [ 64 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
dynamic_batching { }
"""
_IDENTITY = """
backend: "onnxruntime"
max_batch_size: 0
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
# An ensemble whose only step is `mlp`.
ENSEMBLE = """
platform: "ensemble"
max_batch_size: 64
input [ { name: "x" data_type: TYPE_FP32 dims: [ 64 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
ensemble_scheduling { step [
  { model_name: "mlp" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } }
] }
"""
_FLOAT = TensorProto.FLOAT


def add_perf_models(repository: Path) -> None:
    """Writes `mlp` and `identity`."""
    add_model(repository, "mlp", mlp(), config=_MLP)
    add_model(repository, "identity", identity(), config=_IDENTITY)


def mlp() -> onnx.ModelProto:
    """``y = sigmoid(x w)``; x is FP32 ``[batch, 64]``, y ``[batch, 1]``, and each weight is 1 / 64."""
    weights = numpy_helper.from_array(np.full((64, 1), 1 / 64, np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["z"]), helper.make_node("Sigmoid", ["z"], ["y"])]
    inputs = [helper.make_tensor_value_info("x", _FLOAT, ["batch", 64])]
    outputs = [helper.make_tensor_value_info("y", _FLOAT, ["batch", 1])]
    return small_model(nodes, inputs, outputs, [weights])


def identity() -> onnx.ModelProto:
    """``OUTPUT0 = INPUT0``, FP32 of any length, without a batch axis."""
    nodes = [helper.make_node("Identity", ["INPUT0"], ["OUTPUT0"])]
    inputs = [helper.make_tensor_value_info("INPUT0", _FLOAT, ["size"])]
    outputs = [helper.make_tensor_value_info("OUTPUT0", _FLOAT, ["size"])]
    return small_model(nodes, inputs, outputs, [])
