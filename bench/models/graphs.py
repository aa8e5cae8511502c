"""The ONNX graphs that are measured: small, deterministic, each with one thing that it costs."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8

MLP_WIDTHS = (64, 256, 128, 64, 1)
IMAGE_SHAPE = (3, 224, 224)
IMAGE_CLASSES = 8
CONV_SHAPE = (3, 32, 32)
#: Output channels and stride of each convolution: about 0.1 GFLOP a row, so a batch takes milliseconds.
CONV_LAYERS = ((32, 1), (64, 1), (64, 2), (128, 1), (128, 2))
SLOW_WIDTH = 16
#: Side and number of the matrix products of `slow`: about 19 GFLOP a request, some 200 ms on one core.
SLOW_SIDE = 1024
SLOW_PRODUCTS = 9

Weights = dict[str, NDArray[np.float32]]


def mlp(seed: int = 1) -> tuple[onnx.ModelProto, Weights]:
    """A multi-layer perceptron 64-256-128-64-1 with Relu between its layers, and its weights."""
    random = np.random.default_rng(seed)
    weights: Weights = {}
    nodes = []
    value = "x"
    for layer, (rows, columns) in enumerate(pairwise(MLP_WIDTHS)):
        weights[f"w{layer}"] = _normal(random, (rows, columns), scale=rows**-0.5)
        weights[f"b{layer}"] = _normal(random, (columns,), scale=0.1)
        last = layer == len(MLP_WIDTHS) - 2
        gemm = "y" if last else f"gemm{layer}"
        nodes.append(helper.make_node("Gemm", [value, f"w{layer}", f"b{layer}"], [gemm]))
        if not last:
            value = f"relu{layer}"
            nodes.append(helper.make_node("Relu", [gemm], [value]))
    return _model("mlp", nodes, ["N", MLP_WIDTHS[0]], ["N", MLP_WIDTHS[-1]], weights), weights


def image(seed: int = 2) -> tuple[onnx.ModelProto, Weights]:
    """A model that reads each element of an image once: the mean of each channel, then eight weighted sums."""
    random = np.random.default_rng(seed)
    weights = {"w": _normal(random, (IMAGE_SHAPE[0], IMAGE_CLASSES)), "b": _normal(random, (IMAGE_CLASSES,))}
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["means"]),
        helper.make_node("Gemm", ["means", "w", "b"], ["y"]),
    ]
    return _model("image", nodes, ["N", *IMAGE_SHAPE], ["N", IMAGE_CLASSES], weights), weights


def conv(seed: int = 3) -> onnx.ModelProto:
    """A convolution net that is bound by its arithmetic."""
    random = np.random.default_rng(seed)
    weights: Weights = {}
    nodes = []
    value, channels = "x", CONV_SHAPE[0]
    for layer, (filters, stride) in enumerate(CONV_LAYERS):
        weights[f"w{layer}"] = _normal(random, (filters, channels, 3, 3), scale=(channels * 9) ** -0.5)
        nodes.append(
            helper.make_node(
                "Conv", [value, f"w{layer}"], [f"conv{layer}"], strides=[stride, stride], pads=[1, 1, 1, 1]
            )
        )
        nodes.append(helper.make_node("Relu", [f"conv{layer}"], [f"relu{layer}"]))
        value, channels = f"relu{layer}", filters
    weights["w"] = _normal(random, (channels, 10), scale=channels**-0.5)
    nodes += [
        helper.make_node("GlobalAveragePool", [value], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["features"]),
        helper.make_node("MatMul", ["features", "w"], ["y"]),
    ]
    return _model("conv", nodes, ["N", *CONV_SHAPE], ["N", 10], weights)


def slow(seed: int = 4) -> onnx.ModelProto:
    """A chain of large matrix products that starts from the input, so that none can be computed ahead of time."""
    random = np.random.default_rng(seed)
    weights = {"w": _normal(random, (SLOW_SIDE, SLOW_SIDE), scale=SLOW_SIDE**-0.5)}
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["mean"], keepdims=1),
        helper.make_node("Mul", ["w", "mean"], ["m0"]),
    ]
    nodes += [helper.make_node("MatMul", [f"m{step}", "w"], [f"m{step + 1}"]) for step in range(SLOW_PRODUCTS)]
    nodes.append(helper.make_node("ReduceMax", [f"m{SLOW_PRODUCTS}"], ["y"], axes=[0, 1], keepdims=1))
    return _model("slow", nodes, [1, SLOW_WIDTH], [1, 1], weights)


def _normal(random: np.random.Generator, shape: tuple[int, ...], scale: float = 1.0) -> NDArray[np.float32]:
    return (random.standard_normal(shape) * scale).astype(np.float32)


def _model(
    name: str,
    nodes: Sequence[onnx.NodeProto],
    input_shape: Sequence[str | int],
    output_shape: Sequence[str | int],
    weights: Weights,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes),
        name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(input_shape))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, list(output_shape))],
        [numpy_helper.from_array(values, key) for key, values in weights.items()],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="alipes bench"
    )
    onnx.checker.check_model(model)
    return model
