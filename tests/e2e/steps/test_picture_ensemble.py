"""A picture goes in, names of classes come out: native steps around a small network, over every protocol."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from support.models import add_model
from support.pictures import decoded, file_of, photo
from support.server import ServerProcess
from tritonclient.utils import InferenceServerException

Serve = Callable[..., ServerProcess]

NAMES = ["red", "green", "blue"]

ENSEMBLE = """
platform: "ensemble"
max_batch_size: 8
input { name: "file" data_type: TYPE_STRING dims: [ 1 ] }
output [ { name: "names" data_type: TYPE_STRING dims: [ 2 ] }, { name: "shares" data_type: TYPE_FP32 dims: [ 2 ] } ]
ensemble_scheduling { step [
  { model_name: "read" model_version: -1
    input_map { key: "picture" value: "file" } output_map { key: "tensor" value: "pixels" } },
  { model_name: "colours" model_version: -1
    input_map { key: "x" value: "pixels" } output_map { key: "y" value: "means" } },
  { model_name: "best" model_version: -1
    input_map { key: "scores" value: "means" }
    output_map { key: "labels" value: "names" } output_map { key: "scores" value: "shares" } }
] }
"""

READ = """
backend: "picture"
max_batch_size: 8
instance_group { count: 2 }
parameters { key: "resize" value { string_value: "32x32" } }
"""

BEST = """
backend: "top_k"
max_batch_size: 8
input { name: "scores" data_type: TYPE_FP32 dims: [ 3 ] }
parameters { key: "k" value { string_value: "2" } }
parameters { key: "softmax" value { string_value: "1" } }
parameters { key: "labels" value { string_value: "names.txt" } }
"""


def mean_of_channels() -> Any:
    """A network: ten times the mean of each channel."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, 32, 32])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["mean"], axes=[2, 3], keepdims=0),
        helper.make_node("Mul", ["mean", "ten"], ["y"]),
    ]
    ten = numpy_helper.from_array(np.array(10, np.float32), "ten")
    graph = helper.make_graph(nodes, "colours", [x], [y], [ten])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model


@pytest.fixture(scope="module")
def server(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory) -> ServerProcess:
    repository: Path = tmp_path_factory.mktemp("models")
    add_model(repository, "colours", mean_of_channels(), config="max_batch_size: 8 dynamic_batching { }")
    for name, config in (("read", READ), ("best", BEST), ("label", ENSEMBLE)):
        (repository / name / "1").mkdir(parents=True)
        (repository / name / "config.pbtxt").write_text(config)
    (repository / "best" / "names.txt").write_text("\n".join(NAMES))
    return serve_module(repository).wait_until_started()


def expected(file: bytes) -> tuple[list[str], NDArray[np.float64]]:
    """Names and shares, by numpy; of a picture of 32 x 32 pixels, which no filter changes."""
    scores = decoded(file).astype(np.float64).mean(axis=(0, 1)) / 25.5
    shares = np.exp(scores) / np.exp(scores).sum()
    order = np.argsort(-shares)[:2]
    return [NAMES[index] for index in order], shares[order]


def post(server: ServerProcess, document: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(f"http://{server.http}/v2/models/label/infer", json.dumps(document).encode())
    with urllib.request.urlopen(request, timeout=60) as response:
        answer: dict[str, Any] = json.load(response)
    return answer


def document(*files: bytes) -> dict[str, Any]:
    data = [base64.b64encode(file).decode() for file in files]
    return {"inputs": [{"name": "file", "datatype": "BYTES", "shape": [len(files), 1], "data": data}]}


def test_a_jpeg_in_json_comes_back_as_names(server: ServerProcess) -> None:
    files = [file_of(photo(32, 32, seed=seed), "JPEG", quality=90) for seed in range(4)]
    outputs = {output["name"]: output for output in post(server, document(*files))["outputs"]}
    assert outputs["names"]["shape"] == [4, 2]
    for row, file in enumerate(files):
        names, shares = expected(file)
        assert outputs["names"]["data"][2 * row : 2 * row + 2] == names
        np.testing.assert_allclose(outputs["shares"]["data"][2 * row : 2 * row + 2], shares, atol=0.01)


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_jpeg_as_it_is_comes_back_as_names(server: ServerProcess, protocol: str) -> None:
    file = file_of(photo(32, 32, seed=9), "JPEG", quality=90)
    names, shares = expected(file)
    module: Any = {"grpc": grpc_client, "http": http_client}[protocol]
    client = module.InferenceServerClient(server.grpc if protocol == "grpc" else server.http)
    request = module.InferInput("file", [1, 1], "BYTES")
    request.set_data_from_numpy(np.array([[file]], np.object_))
    answer = client.infer("label", [request])
    assert [name.decode() for name in answer.as_numpy("names")[0]] == names
    np.testing.assert_allclose(answer.as_numpy("shares")[0], shares, atol=0.01)


def test_callers_with_bad_pictures_disturb_nobody(server: ServerProcess) -> None:
    client = grpc_client.InferenceServerClient(server.grpc)

    def ask(number: int) -> bool:
        good = number % 3 != 0
        file = file_of(photo(32, 32, seed=number), "JPEG", quality=90)
        request = grpc_client.InferInput("file", [1, 1], "BYTES")
        request.set_data_from_numpy(np.array([[file if good else file[:500]]], np.object_))
        if good:
            shares = client.infer("label", [request]).as_numpy("shares")
            assert shares is not None
            return bool(np.allclose(shares[0], expected(file)[1], atol=0.01))
        with pytest.raises(
            InferenceServerException, match=r"in ensemble 'label', .*holds no picture: a JPEG file that is"
        ):
            client.infer("label", [request])
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(60)))


def test_a_bad_picture_in_json_is_one_error(server: ServerProcess) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(server, document(b"no picture"))
    assert refused.value.code == 400
    assert "holds no picture" in json.load(refused.value)["error"]
