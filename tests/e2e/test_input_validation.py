"""Requests that do not fit their model get one error, whether tensors travel over HTTP or gRPC or lie in a region."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import grpc
import numpy as np
import pytest
from support.python_models import add_python_model
from support.regions import ALLOWED, SharedObject
from support.server import ServerProcess
from tritonclient.grpc import service_pb2

Serve = Callable[..., ServerProcess]

INFER = "/inference.GRPCInferenceService/ModelInfer"


@dataclass(frozen=True)
class Tensor:
    """An input as it is sent, whether it fits or not."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    content: bytes


def int32(name: str, *shape: int, elements: int | None = None) -> Tensor:
    count = int(np.prod(shape)) if elements is None else elements
    return Tensor(name, "INT32", shape, np.ones(count, np.int32).tobytes())


def texts(name: str, *words: bytes, shape: tuple[int, ...] = (2,)) -> Tensor:
    return Tensor(name, "BYTES", shape, b"".join(struct.pack("<I", len(word)) + word for word in words))


# Gives the number of inputs that came, and the sum of their elements or lengths.
SUMS = """
class TritonPythonModel:
    def execute(self, requests):
        return [self.one(request) for request in requests]

    def one(self, request):
        sums = [sum(map(len, one.flat)) if one.dtype == object else one.sum() for one in
                (tensor.as_numpy() for tensor in request.inputs())]
        rows = request.inputs()[0].as_numpy().shape[0] if request.inputs() else 1
        return answer(Y=np.array([[len(sums), int(sum(sums))]] * max(rows, 1), np.int32))
"""
NO_ID = "[request id: <id_unknown>] "
NOTE = (
    "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each "
    "input shape. If you want to specify the full shape including the batch dim in your input dims config, try setting "
    "max_batch_size to zero. See the model configuration docs for more info on max_batch_size."
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    repository: Path = tmp_path_factory.mktemp("models")
    batching = "max_batch_size: 4\n"
    add_python_model(repository, "two", SUMS, signature="A: INT32[2], B: INT32[-1] -> Y: INT32[2]", config=batching)
    add_python_model(repository, "words", SUMS, signature="T: BYTES[2] -> Y: INT32[-1, 2]")
    optional = "A: INT32[2], B: ?INT32[-1], C: ?INT32[-1] -> Y: INT32[2]"
    add_python_model(repository, "some", SUMS, signature=optional, config=batching)
    add_python_model(repository, "any", SUMS, signature="A: ?INT32[-1], B: ?INT32[-1] -> Y: INT32[-1, 2]")
    return serve_module(repository, ALLOWED)


def over_http(
    server: ServerProcess, model: str, tensors: Sequence[Tensor], regions: Sequence[str] = ()
) -> tuple[int, str]:
    """Status and text; the outputs where it is answered. Tensors lie in the regions where there are some."""

    def described(at: int, tensor: Tensor) -> dict[str, object]:
        size = len(tensor.content)
        lies = {"shared_memory_region": regions[at], "shared_memory_byte_size": size} if regions else None
        parameters = lies or {"binary_data_size": size}
        return {"name": tensor.name, "shape": tensor.shape, "datatype": tensor.datatype, "parameters": parameters}

    head = json.dumps({"inputs": [described(at, tensor) for at, tensor in enumerate(tensors)]}).encode()
    tail = b"" if regions else b"".join(tensor.content for tensor in tensors)
    headers = {"Inference-Header-Content-Length": str(len(head))}
    request = Request(f"http://{server.http}/v2/models/{model}/infer", head + tail, headers)
    try:
        with urlopen(request, timeout=60) as response:
            return response.status, str(json.load(response)["outputs"][0]["data"])
    except HTTPError as error:
        with error:
            return error.code, json.load(error)["error"]


def over_grpc(
    server: ServerProcess, model: str, tensors: Sequence[Tensor], regions: Sequence[str] = ()
) -> tuple[int, str]:
    """As `over_http`, with the status that HTTP would have."""
    message = service_pb2.ModelInferRequest(model_name=model)
    for at, tensor in enumerate(tensors):
        made = message.inputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape)
        if regions:
            made.parameters["shared_memory_region"].string_param = regions[at]
            made.parameters["shared_memory_byte_size"].int64_param = len(tensor.content)
        else:
            message.raw_input_contents.append(tensor.content)
    with grpc.insecure_channel(server.grpc) as channel:
        call = channel.unary_unary(
            INFER,
            request_serializer=service_pb2.ModelInferRequest.SerializeToString,
            response_deserializer=service_pb2.ModelInferResponse.FromString,
        )
        try:
            answer = call(message, timeout=60)
        except grpc.RpcError as error:
            assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
            return 400, str(error.details())
    return 200, str(np.frombuffer(answer.raw_output_contents[0], np.int32).tolist())


def in_regions(over: Callable[..., tuple[int, str]]) -> Callable[..., tuple[int, str]]:
    """The same with each tensor in a region of its own."""

    def ask(server: ServerProcess, model: str, tensors: Sequence[Tensor]) -> tuple[int, str]:
        with ExitStack() as stack:
            names = []
            for at, tensor in enumerate(tensors):
                # Larger than the tensor: what it does not use is no part of it.
                shared = stack.enter_context(SharedObject(len(tensor.content) + 64))
                shared.write(tensor.content)
                names.append(f"r{at}")
                control(server, f"region/{names[-1]}/register", {"key": shared.key, "byte_size": shared.byte_size})
            stack.callback(control, server, "unregister", {})
            return over(server, model, tensors, names)

    return ask


def control(server: ServerProcess, verb: str, document: dict[str, object]) -> None:
    """Registers a region, or takes all of them away."""
    path = f"http://{server.http}/v2/systemsharedmemory/{verb}"
    with urlopen(Request(path, json.dumps(document).encode()), timeout=60):
        pass


WAYS = {
    "http": over_http,
    "grpc": over_grpc,
    "http_region": in_regions(over_http),
    "grpc_region": in_regions(over_grpc),
}

A, B, C = int32("A", 1, 2), int32("B", 1, 3), int32("C", 1, 4)

REFUSED: dict[str, tuple[str, list[Tensor], str]] = {
    "one missing": (
        "two",
        [A],
        "expected 2 inputs but got 1 inputs for model 'two'. Got input(s) ['A'], but missing required input(s) ['B']. "
        "Please provide all required input(s).",
    ),
    "one too many": (
        "two",
        [A, B, C],
        "expected 2 inputs but got 3 inputs for model 'two'. Got input(s) ['C','B','A'], but missing required input(s) "
        "[]. Please provide all required input(s).",
    ),
    "a required one among optional ones": (
        "some",
        [],
        "expected number of inputs between 1 and 3 but got 0 inputs for model 'some'. Got input(s) [], but missing "
        "required input(s) ['A']. Please provide all required input(s).",
    ),
    "more than all optional ones": (
        "some",
        [A, B, C, int32("D", 1, 1)],
        "expected number of inputs between 1 and 3 but got 4 inputs for model 'some'. Got input(s) ['D','C','B','A'], "
        "but missing required input(s) []. Please provide all required input(s).",
    ),
    "twice the same": ("two", [A, A], "input 'A' already exists in request"),
    "unknown": ("two", [A, int32("Q", 1, 1)], "unexpected inference input 'Q' for model 'two'; it takes 'A', 'B'"),
    "another datatype": (
        "two",
        [Tensor("A", "FP32", (1, 2), bytes(8)), B],
        "inference input 'A' data-type is 'FP32', but model 'two' expects 'INT32'",
    ),
    "batch sizes that differ": (
        "two",
        [A, int32("B", 2, 3)],
        "input 'A' batch size does not match other inputs for 'two'",
    ),
    "a batch too large": (
        "two",
        [int32("A", 5, 2), int32("B", 5, 1)],
        "inference request batch-size must be <= 4 for 'two'",
    ),
    "no sizes": (
        "two",
        [int32("A", elements=1), B],
        "input 'A' has no shape but model requires batch dimension for 'two'",
    ),
    "a size too many": (
        "two",
        [int32("A", 1, 2, 1), B],
        f"unexpected shape for input 'A' for model 'two'. Expected [-1,2], got [1,2,1]. {NOTE}",
    ),
    "another size": (
        "two",
        [int32("A", 1, 3), B],
        f"unexpected shape for input 'A' for model 'two'. Expected [-1,2], got [1,3]. {NOTE}",
    ),
    "bytes too few": (
        "two",
        [int32("A", 1, 2, elements=1), B],
        "input byte size mismatch for input 'A' for model 'two'. Expected 8, got 4",
    ),
    "bytes too many": (
        "two",
        [A, int32("B", 1, 3, elements=4)],
        "input byte size mismatch for input 'B' for model 'two'. Expected 12, got 16",
    ),
    "strings too few": (
        "words",
        [texts("T", b"one")],
        "expected 2 string elements for inference input 'T' for model 'words', got 1",
    ),
    "strings too many": (
        "words",
        [texts("T", b"one", b"", b"three")],
        "unexpected number of string elements 3 for inference input 'T' for model 'words', expecting 2",
    ),
    "strings in two rows": (
        "words",
        [texts("T", b"one", b"two", shape=(1, 2))],
        "unexpected shape for input 'T' for model 'words'. Expected [2], got [1,2]. ",
    ),
}

ACCEPTED: dict[str, tuple[str, list[Tensor], list[int]]] = {
    "all": ("two", [B, A], [2, 5]),
    "strings": ("words", [texts("T", b"one", b"")], [1, 3] * 2),
    "no optional one": ("some", [A], [1, 2]),
    "one optional one": ("some", [A, C], [2, 6]),
    "all optional ones": ("some", [C, B, A], [3, 9]),
    # Only their number is looked at, as in Triton: the model sees what is missing.
    "an optional one in place of a required one": ("some", [B], [1, 3]),
    "nothing at all": ("any", [], [0, 0]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_gets_one_error(server: ServerProcess, way: str, case: str) -> None:
    model, tensors, text = REFUSED[case]
    status, message = WAYS[way](server, model, tensors)
    assert (status, message.removeprefix(NO_ID)) == (400, text)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", ACCEPTED)
def test_what_fits_reaches_the_model(server: ServerProcess, way: str, case: str) -> None:
    model, tensors, seen = ACCEPTED[case]
    assert WAYS[way](server, model, tensors) == (200, str(seen))


EMPTY = int32("B", 1, 0)


@pytest.mark.parametrize("way", WAYS)
def test_a_tensor_without_elements_travels_but_lies_in_no_region(server: ServerProcess, way: str) -> None:
    answer = WAYS[way](server, "two", [A, EMPTY])
    if "region" in way:
        place = "; input 'B' (inputs[1])" if "http" in way else ""
        assert answer == (400, f"Invalid offset + byte size for shared memory region: 'r1'{place}")
    else:
        assert answer == (200, "[2, 2]")


@pytest.mark.parametrize("way", ["grpc", "grpc_region"])
def test_a_negative_size_is_refused(server: ServerProcess, way: str) -> None:
    status, message = WAYS[way](server, "two", [Tensor("A", "INT32", (1, -1), bytes(8)), B])
    text = "All input dimensions should be specified for input 'A' for model 'two', got [1,-1]"
    assert (status, message.removeprefix(NO_ID)) == (400, text)
