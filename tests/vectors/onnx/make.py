"""Writes the small ONNX models beside this file: one for each thing that an engine must get right.

Needs `onnx` and `numpy`; the written files are kept, so that tests need neither.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent
FP32, BF16 = TensorProto.FLOAT, TensorProto.BFLOAT16
tensor = helper.make_tensor_value_info
node = helper.make_node


def save(
    name: str,
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    constants: Sequence[TensorProto] = (),
) -> None:
    """Write a model under its name.

    Args:
        name: File name without its ending.
        nodes: The graph.
        inputs: What it takes.
        outputs: What it gives.
        constants: Values that the graph refers to.
    """
    graph = helper.make_graph(nodes, name, inputs, outputs, constants)
    model: ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    onnx.save(model, HERE / f"{name}.onnx")


def constant(name: str, values: object, datatype: type[np.generic]) -> TensorProto:
    """A named constant.

    Args:
        name: Name of the value.
        values: Nested lists.
        datatype: Element type.

    Returns:
        The constant as the graph stores it.
    """
    return numpy_helper.from_array(np.array(values, datatype), name)


def main() -> None:
    """Write every model."""
    # An element type that few clients send.
    save("bf16", [node("Identity", ["X"], ["Y"])], [tensor("X", BF16, ["b", 2])], [tensor("Y", BF16, ["b", 2])])

    # One output that is large and one that is small: WIDE has 128 KiB a row.
    save(
        "wide",
        [
            node("ConstantOfShape", ["size"], ["ones"], value=helper.make_tensor("one", FP32, [1], [1.0])),
            node("Mul", ["X", "ones"], ["WIDE"]),
            node("Neg", ["X"], ["SMALL"]),
        ],
        [tensor("X", FP32, ["b", 1])],
        [tensor("WIDE", FP32, ["b", 32768]), tensor("SMALL", FP32, ["b", 1])],
        [constant("size", [32768], np.int64)],
    )

    # An output that is the input itself.
    row = tensor("X", FP32, ["b"])
    save("same", [node("Neg", ["X"], ["Y"])], [row], [row, tensor("Y", FP32, ["b"])])

    # Fails while it runs: an index beyond the table.
    save(
        "table",
        [node("Gather", ["rows", "X"], ["Y"])],
        [tensor("X", TensorProto.INT64, ["b"])],
        [tensor("Y", FP32, ["b"])],
        [constant("rows", [0.5, 1.5, 2.5], np.float32)],
    )

    # Tensors without dimensions.
    save("scalar", [node("Neg", ["X"], ["Y"])], [tensor("X", FP32, [])], [tensor("Y", FP32, [])])

    # What the protocol has no words for: a sequence, and elements of eight-bit floats.
    sequence = helper.make_tensor_sequence_value_info("Y", FP32, None)
    save("sequence", [node("SequenceConstruct", ["X"], ["Y"])], [tensor("X", FP32, [2])], [sequence])
    eight = TensorProto.FLOAT8E4M3FN
    save("float8", [node("Identity", ["X"], ["Y"])], [tensor("X", eight, [2])], [tensor("Y", eight, [2])])


if __name__ == "__main__":
    main()
