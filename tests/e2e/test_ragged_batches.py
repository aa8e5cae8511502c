"""Requests of different shapes in one batch: what a model gets of them, what the batch tells it, and what goes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import onnx
import pytest
import tritonclient.grpc as grpc_client
from numpy.typing import NDArray
from onnx import TensorProto, helper
from support.models import add_model
from support.python_models import add_python_model
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]
Floats = NDArray[np.float32]

# The first batch of each model waits for three requests.
TOGETHER = {"TRITONSERVER_DELAY_SCHEDULER": "3"}

# What each kind tells of requests of the shapes [1,2], [1,3] and [2,2]: the values, and their shape.
KINDS = {
    "BATCH_ELEMENT_COUNT": ([2, 3, 4], [3]),
    "BATCH_ACCUMULATED_ELEMENT_COUNT": ([2, 5, 9], [3]),
    "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO": ([0, 2, 5, 9], [4]),
    "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE": (None, [4]),
    "BATCH_ITEM_SHAPE": ([2, 3, 2, 2], [4, 1]),
    "BATCH_ITEM_SHAPE_FLATTEN": ([2, 3, 2, 2], [4]),
}
NUMBERS = {"INT32": TensorProto.INT32, "FP32": TensorProto.FLOAT}

RAGGED = """backend: "onnxruntime"
max_batch_size: 8
dynamic_batching {{ }}
instance_group [ {{ kind: KIND_CPU count: 1 }} ]
input [ {{ name: "IN" data_type: TYPE_FP32 dims: [ {dims} ] allow_ragged_batch: true }},
        {{ name: "ROW" data_type: TYPE_FP32 dims: [ 1 ] }} ]
output [ {{ name: "ALL" data_type: TYPE_FP32 dims: [ -1 ] }},
         {{ name: "TOLD" data_type: TYPE_{datatype} dims: [ -1 ] }},
         {{ name: "SIZES" data_type: TYPE_INT64 dims: [ {rank} ] }} ]
batch_input [ {{ kind: {kind} target_name: "MADE" data_type: TYPE_{datatype} source_input: "IN" }} ]
"""

SCATTERED = """backend: "onnxruntime"
max_batch_size: 8
dynamic_batching { }
instance_group [ { kind: KIND_CPU count: 1 } ]
input [ { name: "IN" data_type: TYPE_FP32 dims: [ -1, -1 ] allow_ragged_batch: true } ]
output [ { name: "OUT" data_type: TYPE_FP32 dims: [ -1, -1 ] } ]
batch_output [ { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "OUT" source_input: "IN" } ]
"""

ROWS = """
class TritonPythonModel:
    def execute(self, requests):
        shapes = repr([list(given(request).shape) for request in requests])
        return [answer(Y=np.array([[shapes]] * given(request).shape[0], object)) for request in requests]
"""


def config(kind: str, datatype: str, dims: str) -> str:
    # The engine infers of a matrix that it has two sizes.
    rank = 2 if kind == "BATCH_ITEM_SHAPE" else -1
    return RAGGED.format(dims=dims, kind=kind, datatype=datatype, rank=rank)


def tells(kind: str, datatype: int) -> onnx.ModelProto:
    """Each row gets all elements of the batch, all that MADE holds, and the sizes of MADE."""

    def value(name: str, kind_: int, *sizes: str | int) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind_, sizes)

    made = ("r", "n") if kind == "BATCH_ITEM_SHAPE" else ("n",)
    inputs = [
        value("IN", TensorProto.FLOAT, "e"),
        value("ROW", TensorProto.FLOAT, "b", 1),
        value("MADE", datatype, *made),
    ]
    outputs = [value("ALL", TensorProto.FLOAT, "b", "x"), value("TOLD", datatype, "b", "y")]
    outputs.append(value("SIZES", TensorProto.INT64, "b", "z"))
    nodes = [helper.make_node("Shape", ["ROW"], ["rows"]), helper.make_node("Shape", ["MADE"], ["sizes"])]
    for source, target in (("IN", "ALL"), ("MADE", "TOLD"), ("sizes", "SIZES")):
        nodes.append(helper.make_node("Reshape", [source, "line"], [f"{target}_line"]))
        nodes.append(helper.make_node("Expand", [f"{target}_line", "rows"], [target]))
    line = helper.make_tensor("line", TensorProto.INT64, [2], [1, -1])
    return finished(nodes, inputs, outputs, [line])


def doubles() -> onnx.ModelProto:
    """``OUT = 2 * IN``, both of one dimension."""
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in ("IN", "OUT")]
    return finished([helper.make_node("Add", ["IN", "IN"], ["OUT"])], ports[:1], ports[1:], [])


def finished(nodes: list[Any], inputs: list[Any], outputs: list[Any], constants: list[Any]) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "model", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    return model


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    repository: Path = tmp_path_factory.mktemp("models")
    for kind in KINDS:
        for datatype, number in NUMBERS.items():
            add_model(repository, f"{kind}_{datatype}", tells(kind, number), config=config(kind, datatype, "-1"))
    two_sizes = config("BATCH_ITEM_SHAPE", "INT32", "-1, -1")
    add_model(repository, "two_sizes", tells("BATCH_ITEM_SHAPE", TensorProto.INT32), config=two_sizes)
    add_model(repository, "scattered", doubles(), config=SCATTERED)
    batching = "max_batch_size: 8\ndynamic_batching { max_queue_delay_microseconds: 200000 }\n"
    add_python_model(repository, "apart", ROWS, signature="X: FP32[-1] -> Y: BYTES[1]", config=batching)
    folder = add_python_model(repository, "joined", ROWS, signature="X: FP32[-1] -> Y: BYTES[1]", config=batching)
    file = folder / "config.pbtxt"
    file.write_text(file.read_text().replace("dims: [ -1 ]", "dims: [ -1 ] allow_ragged_batch: true", 1))
    return serve_module(repository, environment=TOGETHER)


@pytest.fixture
def ask(server: ServerProcess) -> Iterator[Callable[..., list[Any]]]:
    """Sends requests without waiting, each with its inputs by name; gives the results in their order."""
    results: Queue[tuple[Any, Any]] = Queue()
    with grpc_client.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: results.put((result, error)))

        def send(model: str, *requests: dict[str, Floats]) -> list[Any]:
            for inputs in requests:
                tensors = []
                for name, array in inputs.items():
                    tensors.append(grpc_client.InferInput(name, list(array.shape), "FP32"))
                    tensors[-1].set_data_from_numpy(array)
                client.async_stream_infer(model, tensors)
            answers = [results.get(timeout=60) for _ in requests]
            assert [str(error) for _, error in answers if error] == []
            return [result for result, _ in answers]

        yield send


def numbers(*shape: int, first: int = 0) -> Floats:
    return np.arange(first, first + int(np.prod(shape)), dtype=np.float32).reshape(shape)


def request(*shape: int, first: int = 0) -> dict[str, Floats]:
    return {"IN": numbers(*shape, first=first), "ROW": numbers(shape[0], 1)}


@pytest.mark.parametrize("datatype", NUMBERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_tells_of_its_requests(ask: Callable[..., list[Any]], kind: str, datatype: str) -> None:
    answers = ask(f"{kind}_{datatype}", request(1, 2), request(1, 3, first=2), request(2, 2, first=5))
    values, sizes = KINDS[kind]
    for answer, rows in zip(answers, (1, 1, 2), strict=True):
        assert answer.as_numpy("ALL").tolist() == [list(range(9))] * rows
        assert answer.as_numpy("SIZES").tolist() == [sizes] * rows
        if values is not None:
            assert answer.as_numpy("TOLD").tolist() == [values] * rows


def test_sizes_of_rows_stand_one_below_the_other(ask: Callable[..., list[Any]]) -> None:
    answers = ask("two_sizes", request(1, 2, 3), request(2, 4, 1), request(1, 1, 1))
    for answer, rows in zip(answers, (1, 2, 1), strict=True):
        assert answer.as_numpy("SIZES").tolist() == [[4, 2]] * rows
        assert answer.as_numpy("TOLD").tolist() == [[2, 3, 4, 1, 4, 1, 1, 1]] * rows


def test_an_output_goes_back_in_the_shapes_in_which_its_input_came(ask: Callable[..., list[Any]]) -> None:
    sent = [numbers(1, 2, 3), numbers(2, 1, 4, first=6), numbers(1, 3, 1, first=14)]
    answers = ask("scattered", *({"IN": array} for array in sent))
    assert [answer.as_numpy("OUT").tolist() for answer in answers] == [(2 * array).tolist() for array in sent]


@pytest.mark.parametrize(("model", "seen"), [("joined", "[[1, 2], [1, 3], [2, 1]]"), ("apart", "")])
def test_a_python_model_gets_each_request_in_its_shape(ask: Callable[..., list[Any]], model: str, seen: str) -> None:
    shapes = [(1, 2), (1, 3), (2, 1)]
    answers = ask(model, *({"X": numbers(*shape)} for shape in shapes))
    texts = [answer.as_numpy("Y")[0, 0].decode() for answer in answers]
    assert texts == ([seen] * 3 if seen else [repr([list(shape)]) for shape in shapes])
