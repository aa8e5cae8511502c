"""Small ONNX models, and repositories made of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# The oldest format that every ONNX Runtime in use reads.
_IR_VERSION = 8
_OPSET = 17


def times(factor: float = 2.0, columns: int | str = 2) -> onnx.ModelProto:
    """``Y = factor * X``; X and Y are FP32 ``[batch, columns]``, any number of columns where these are a word."""
    shape = ["batch", columns]
    node = helper.make_node("Mul", ["X", "factor"], ["Y"])
    return small_model(
        [node],
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(np.array(factor, np.float32), "factor")],
    )


def fails_above(limit: float, factor: float = 2.0) -> onnx.ModelProto:
    """``Y = factor * X`` as of `times`; a request with a larger element than the limit fails."""
    shape = ["batch", 2]
    nodes = [
        helper.make_node("Greater", ["X", "limit"], ["above"]),
        helper.make_node("Cast", ["above"], ["place"], to=TensorProto.INT64),
        helper.make_node("Gather", ["factors", "place"], ["factor"]),  # which has the place 0 alone
        helper.make_node("Mul", ["X", "factor"], ["Y"]),
    ]
    return small_model(
        nodes,
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, shape)],
        [
            numpy_helper.from_array(np.array(limit, np.float32), "limit"),
            numpy_helper.from_array(np.array([factor], np.float32), "factors"),
        ],
    )


def busy(side: int = 256) -> onnx.ModelProto:
    """Multiplies matrices ``STEPS`` times, so that a request lasts as long as the test needs; DONE is ``STEPS``.

    STEPS and DONE are INT64 ``[1]``: the model has no batch dimension.
    """
    matrix = helper.make_tensor_value_info("matrix_in", TensorProto.FLOAT, [side, side])
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["matrix_in", "unit"], ["matrix_out"]),
            helper.make_node("Identity", ["go_in"], ["go_out"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("step", TensorProto.INT64, []),
            helper.make_tensor_value_info("go_in", TensorProto.BOOL, []),
            matrix,
        ],
        [
            helper.make_tensor_value_info("go_out", TensorProto.BOOL, []),
            helper.make_tensor_value_info("matrix_out", TensorProto.FLOAT, [side, side]),
        ],
    )
    nodes = [
        helper.make_node("Squeeze", ["STEPS", "axis"], ["count"]),
        helper.make_node("Loop", ["count", "go", "unit"], ["product"], body=body),
        # The product takes part in the answer, or the optimizer would drop the loop.
        helper.make_node("ReduceMax", ["product"], ["largest"], keepdims=0),
        helper.make_node("Cast", ["largest"], ["one"], to=TensorProto.INT64),
        helper.make_node("Mul", ["STEPS", "one"], ["DONE"]),
    ]
    ports = [helper.make_tensor_value_info(name, TensorProto.INT64, [1]) for name in ("STEPS", "DONE")]
    return small_model(
        nodes,
        ports[:1],
        ports[1:],
        [
            numpy_helper.from_array(np.array([0], np.int64), "axis"),
            numpy_helper.from_array(np.array(True), "go"),
            numpy_helper.from_array(np.eye(side, dtype=np.float32), "unit"),
        ],
    )


def times_external(location: str) -> bytes:
    """The file of `times` whose constant stands in a file of its own."""
    model = times()
    (constant,) = model.graph.initializer
    constant.ClearField("raw_data")
    constant.data_location = TensorProto.EXTERNAL
    constant.external_data.add(key="location", value=location)
    return model.SerializeToString()


def endless_to_load(side: int = 1024, products: int = 5000) -> onnx.ModelProto:
    """``Y = X * constant``; the optimizer works the constant out while the model is loaded, which takes minutes."""
    shape = ["batch", side]
    nodes = [helper.make_node("Expand", ["one", "sides"], ["p0"])]
    nodes += [helper.make_node("MatMul", [f"p{at}", "p0"], [f"p{at + 1}"]) for at in range(products)]
    nodes.append(helper.make_node("MatMul", ["X", f"p{products}"], ["Y"]))
    constants = {"one": np.array(1e-3, np.float32), "sides": np.array([side, side], np.int64)}
    return small_model(
        nodes,
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )


def counts_up() -> onnx.ModelProto:
    """``Y = NEW = X + OLD``; all INT32 ``[batch, 1]``."""
    ports = [helper.make_tensor_value_info(name, TensorProto.INT32, ["batch", 1]) for name in ("X", "OLD", "Y", "NEW")]
    nodes = [helper.make_node("Add", ["X", "OLD"], ["NEW"]), helper.make_node("Identity", ["NEW"], ["Y"])]
    return small_model(nodes, ports[:2], ports[2:], [])


def remembers_last(datatype: int, size: int | str) -> onnx.ModelProto:
    """``Y = OLD`` and ``NEW = X``: each request is answered with the one before it; all ``[batch, size]``.

    Args:
        datatype: A number of `onnx.TensorProto`.
        size: A word stands for any size.
    """
    ports = [helper.make_tensor_value_info(name, datatype, ["batch", size]) for name in ("X", "OLD", "Y", "NEW")]
    nodes = [helper.make_node("Identity", ["OLD"], ["Y"]), helper.make_node("Identity", ["X"], ["NEW"])]
    return small_model(nodes, ports[:2], ports[2:], [])


def remembers_all() -> onnx.ModelProto:
    """``ALL = NEW = OLD`` with ``X`` behind it; all FP32 of one dimension, of any size."""
    sizes = {"X": "more", "OLD": "known", "ALL": "all", "NEW": "all"}
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [size]) for name, size in sizes.items()]
    nodes = [
        helper.make_node("Concat", ["OLD", "X"], ["NEW"], axis=0),
        helper.make_node("Identity", ["NEW"], ["ALL"]),
    ]
    return small_model(nodes, ports[:2], ports[2:], [])


def remembers_rows() -> onnx.ModelProto:
    """``ALL = NEW = OLD`` with ``X`` behind it; all FP32 ``[batch, size]``, of any size."""
    sizes = {"X": "more", "OLD": "known", "ALL": "all", "NEW": "all"}
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", size]) for name, size in sizes.items()]
    nodes = [
        helper.make_node("Concat", ["OLD", "X"], ["NEW"], axis=1),
        helper.make_node("Identity", ["NEW"], ["ALL"]),
    ]
    return small_model(nodes, ports[:2], ports[2:], [])


def add_model(
    repository: Path,
    name: str,
    model: onnx.ModelProto | None = None,
    *,
    versions: Iterable[int] = (1,),
    config: str | None = None,
) -> Path:
    """Writes a model's folder with the same file in every version, and returns it.

    Args:
        repository: The repository, made if absent.
        name: The model.
        model: Defaults to `times`.
        versions: Version directories to make.
        config: Text of `config.pbtxt`; none is written by default.
    """
    folder = repository / name
    content = (model if model is not None else times()).SerializeToString()
    for version in versions:
        (folder / str(version)).mkdir(parents=True)
        (folder / str(version) / "model.onnx").write_bytes(content)
    folder.mkdir(parents=True, exist_ok=True)
    if config is not None:
        (folder / "config.pbtxt").write_text(config)
    return folder


def small_model(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    constants: list[onnx.TensorProto],
) -> onnx.ModelProto:
    """A graph as a model."""
    graph = helper.make_graph(nodes, "model", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)])
    model.ir_version = _IR_VERSION
    onnx.checker.check_model(model)
    return model
