"""The same models as ONNX files, whose state the server keeps for them: other ways, the same bits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.sequences import SequenceStream, add_streaming
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

CHANNELS, STRIDE, LENGTH, BATCH = 2, 3, 8, 2
UPDATE, UPDATES, KERNEL = 2, 3, 7
SUMS = UPDATE * (UPDATES + BATCH - 1)


class Graph:
    """Nodes and numbers, each under a name of its own."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.numbers: list[onnx.TensorProto] = []

    def number(self, values: object, kind: type = np.int64) -> str:
        """A constant."""
        name = f"c{len(self.numbers)}"
        self.numbers.append(numpy_helper.from_array(np.array(values, kind), name))
        return name

    def node(self, operator: str, *inputs: str, name: str = "", **attributes: object) -> str:
        """What an operator makes of its inputs."""
        made = name or f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [made], **attributes))
        return made

    def slice(self, tensor: str, begin: int, end: int, axis: int, name: str = "") -> str:
        """A part of a tensor along an axis."""
        return self.node("Slice", tensor, *(self.number([at]) for at in (begin, end, axis)), name=name)

    def model(self, inputs: dict[str, list[int]], outputs: dict[str, list[int]]) -> onnx.ModelProto:
        """The whole as a model."""
        ports = (
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in side.items()]
            for side in (inputs, outputs)
        )
        graph = helper.make_graph(self.nodes, "exported", *ports, self.numbers)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        made.ir_version = 8
        onnx.checker.check_model(made)
        return made


def snapshotter() -> onnx.ModelProto:
    """Windows out of the state without its oldest samples, and what is new."""
    graph = Graph()
    history = graph.slice("input_state", STRIDE, LENGTH, 2)
    samples = graph.node("Concat", history, "IN", axis=2)
    windows = [graph.slice(samples, at * STRIDE, at * STRIDE + LENGTH, 2) for at in range(BATCH)]
    graph.node("Concat", *windows, axis=0, name="OUT")
    length = LENGTH - STRIDE + BATCH * STRIDE
    graph.slice(samples, length - LENGTH, length, 2, name="output_state")
    update, state = [1, CHANNELS, BATCH * STRIDE], [1, CHANNELS, LENGTH]
    return graph.model({"IN": update, "input_state": state}, {"OUT": [BATCH, CHANNELS, LENGTH], "output_state": state})


def averager() -> onnx.ModelProto:
    """Sums to which each prediction adds its share, one after the other."""
    graph = Graph()
    sums, count = "input_state", graph.number(UPDATES, np.float32)
    for at in range(BATCH):
        prediction = graph.slice(graph.slice("IN", at, at + 1, 0), KERNEL - UPDATE * UPDATES, KERNEL, 2)
        share = graph.node("Div", prediction, count)
        behind = SUMS - at * UPDATE - UPDATE * UPDATES
        sums = graph.node("Add", sums, graph.node("Pad", share, graph.number([0, 0, at * UPDATE, 0, 0, behind])))
    graph.slice(sums, 0, BATCH * UPDATE, 2, name="OUT")
    rest = graph.slice(sums, BATCH * UPDATE, SUMS, 2)
    graph.node("Pad", rest, graph.number([0, 0, 0, 0, 0, BATCH * UPDATE]), name="output_state")
    state = [1, CHANNELS, SUMS]
    return graph.model(
        {"IN": [BATCH, CHANNELS, KERNEL], "input_state": state},
        {"OUT": [1, CHANNELS, BATCH * UPDATE], "output_state": state},
    )


def add_exported(repository: Path, name: str, model: onnx.ModelProto) -> None:
    """Adds an ONNX model whose state the server keeps."""
    (repository / name / "1").mkdir(parents=True)
    onnx.save(model, repository / name / "1" / "model.onnx")
    dims = {
        port.name: [size.dim_value for size in port.type.tensor_type.shape.dim]
        for port in (*model.graph.input, *model.graph.output)
    }
    zeros = f'initial_state {{ name: "zeros" data_type: TYPE_FP32 dims: {dims["input_state"]} zero_data: true }}'
    (repository / name / "config.pbtxt").write_text(f"""
        input {{ name: "IN" data_type: TYPE_FP32 dims: {dims["IN"]} }}
        output {{ name: "OUT" data_type: TYPE_FP32 dims: {dims["OUT"]} }}
        instance_group {{ count: 4 }}
        sequence_batching {{
          direct {{}} max_sequence_idle_microseconds: 60000000
          state {{ input_name: "input_state" output_name: "output_state" data_type: TYPE_FP32
                   dims: {dims["input_state"]} {zeros} }}
        }}
    """)


@pytest.fixture(scope="module")
def server(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory) -> ServerProcess:
    repository: Path = tmp_path_factory.mktemp("models")
    sizes = {"stride_size": STRIDE, "snapshot_size": LENGTH, "batch_size": BATCH, "channels": f"OUT:{CHANNELS}"}
    add_streaming(repository, "windows", "snapshotter", **sizes)
    sizes = {"update_size": UPDATE, "num_updates": UPDATES, "batch_size": BATCH, "kernel_size": KERNEL}
    add_streaming(repository, "means", "averager", **sizes, channels=CHANNELS)
    add_exported(repository, "exported_windows", snapshotter())
    add_exported(repository, "exported_means", averager())
    return serve_module(repository)


@pytest.mark.parametrize(
    ("ours", "name", "exported", "shape"),
    [
        ("windows", "snapshot_update", "exported_windows", (1, CHANNELS, BATCH * STRIDE)),
        ("means", "update", "exported_means", (BATCH, CHANNELS, KERNEL)),
    ],
)
def test_an_exported_model_gives_the_same_bits(
    server: ServerProcess, ours: str, name: str, exported: str, shape: tuple[int, ...]
) -> None:
    noise = np.random.default_rng(3).standard_normal((4, 12, *shape), np.float32)
    found: dict[str, list[bytes]] = {}
    for model, tensor in ((ours, name), (exported, "IN")):
        with SequenceStream(server) as stream:
            for step in range(12):
                for sequence in range(4):
                    update = noise[sequence, step]
                    stream.send(model, tensor, update, sequence + 1, start=step == 0, end=step == 11)
            found[model] = [answer.tobytes() for answer in stream.receive_all(48)]
    assert found[ours] == found[exported]
