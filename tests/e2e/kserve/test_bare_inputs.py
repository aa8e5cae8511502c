"""The only input of a model that came without a configuration takes any name and any numbers, on every protocol."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from support.kserve_script import ask
from support.models import times
from support.server import ServerProcess
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

CONFIGURED = """
input { name: "X" data_type: TYPE_FP32 dims: [-1, 2] }
output { name: "Y" data_type: TYPE_FP32 dims: [-1, 2] }
"""
KINDS = (
    "bool",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    store = tmp_path_factory.mktemp("store")
    for name in ("bare", "configured", "versions/1"):
        (store / name).mkdir(parents=True)
        (store / name / "model.onnx").write_bytes(times(2.0, 2).SerializeToString())
    (store / "configured" / "config.pbtxt").write_text(CONFIGURED)
    return serve_module(f"--model-store={store}")


@pytest.fixture(params=["http", "grpc"])
def client(request: pytest.FixtureRequest, server: ServerProcess) -> Callable[..., np.ndarray]:
    module = http_client if request.param == "http" else grpc_client

    def infer(model: str, array: np.ndarray, name: str = "input-0") -> np.ndarray:
        tensor = module.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
        tensor.set_data_from_numpy(array)
        with module.InferenceServerClient(getattr(server, request.param)) as client:
            return np.asarray(client.infer(model, [tensor]).as_numpy("Y"))

    return infer


@pytest.mark.parametrize("kind", KINDS)
def test_binary_numbers_of_every_datatype_are_accepted(client: Callable[..., np.ndarray], kind: str) -> None:
    answer = client("bare", np.array([[1, 0]], kind))
    assert (answer.dtype, answer.tolist()) == (np.float32, [[2, 0]])


@pytest.mark.parametrize(
    ("datatype", "data"), [("INT64", [[1, -2]]), ("FP64", [[1.0, -2.0]]), ("FP32", [1, -2]), ("INT8", [1, -2])]
)
def test_json_numbers_are_accepted(server: ServerProcess, datatype: str, data: object) -> None:
    tensor = {"name": "predict", "shape": [1, 2], "datatype": datatype, "data": data}
    for model in ("bare", "versions"):
        answer = ask(f"http://{server.http}/v2/models/{model}/infer", {"inputs": [tensor]})
        assert (answer.status, answer.document["outputs"][0]["data"]) == (200, [2.0, -4.0])


def test_what_would_be_another_value_or_no_number_is_refused(client: Callable[..., np.ndarray]) -> None:
    with pytest.raises(
        InferenceServerException, match="input 'X' of model 'bare' takes FP32, and element 1 is 1000000"
    ):
        client("bare", np.array([[1, 1e300]]))
    with pytest.raises(InferenceServerException, match="data-type is 'BYTES', but model 'bare' expects 'FP32'"):
        client("bare", np.array([["a", "b"]], object), "X")
    with pytest.raises(InferenceServerException, match="unexpected shape for input 'X'"):
        client("bare", np.zeros((1, 3)))


@pytest.mark.parametrize("wire", ["http", "grpc"])
def test_the_memory_of_converted_numbers_counts_among_the_bytes_in_flight(
    tmp_path: Path, serve: Callable[..., ServerProcess], wire: str
) -> None:
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "model.onnx").write_bytes(times(columns="columns").SerializeToString())
    server = serve(f"--model-store={tmp_path}", "--max-inflight-bytes=1000000")
    module = http_client if wire == "http" else grpc_client
    with module.InferenceServerClient(getattr(server, wire)) as client:

        def double(columns: int) -> np.ndarray:
            tensor = module.InferInput("X", [1, columns], "UINT8")
            tensor.set_data_from_numpy(np.ones((1, columns), np.uint8))
            return np.asarray(client.infer("bare", [tensor]).as_numpy("Y"))

        with pytest.raises(InferenceServerException, match="an input in the model's datatype of 800000 bytes does not"):
            double(200_000)
        assert double(40_000).sum() == 80_000


def test_a_configured_model_wants_its_name_and_its_datatype(client: Callable[..., np.ndarray]) -> None:
    assert client("configured", np.ones((1, 2), np.float32), "X").tolist() == [[2, 2]]
    with pytest.raises(InferenceServerException, match="unexpected inference input 'input-0'"):
        client("configured", np.ones((1, 2), np.float32))
    with pytest.raises(InferenceServerException, match="data-type is 'FP64', but model 'configured' expects 'FP32'"):
        client("configured", np.ones((1, 2)), "X")


def test_a_model_of_a_repository_wants_its_name(tmp_path: Path, serve: Callable[..., ServerProcess]) -> None:
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "model.onnx").write_bytes(times(2.0, 2).SerializeToString())
    tensor = {"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}
    answer = ask(f"http://{serve(tmp_path).http}/v2/models/m/infer", {"inputs": [tensor]})
    assert (answer.status, answer.document["error"].partition(" for ")[0]) == (400, "unexpected inference input 'x'")


def test_a_configuration_of_a_load_request_counts(tmp_path: Path, serve: Callable[..., ServerProcess]) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "model.onnx").write_bytes(times(2.0, 2).SerializeToString())
    server = serve(f"--model-store={tmp_path}", "--model-control-mode=explicit")
    tensor = {"name": "x", "shape": [1, 2], "datatype": "INT32", "data": [1, 2]}
    config = (
        '{"backend": "onnxruntime", "input": [{"name": "X", "data_type": "TYPE_FP32", "dims": [-1, 2]}], '
        '"output": [{"name": "Y", "data_type": "TYPE_FP32", "dims": [-1, 2]}]}'
    )
    for body, status in (({}, 200), ({"parameters": {"config": config}}, 400)):
        assert ask(f"http://{server.http}/v2/repository/models/m/load", body).status == 200
        assert ask(f"http://{server.http}/v2/models/m/infer", {"inputs": [tensor]}).status == status
