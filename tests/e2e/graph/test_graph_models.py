"""The graph as a model of its name: metadata, readiness, its line in the index."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tritonclient.grpc
import tritonclient.http
from support.graph_steps import get_document, node, post_graph, write_graph
from support.models import add_model, times
from support.server import ServerProcess
from tritonclient.utils import InferenceServerException

Serve = Callable[..., ServerProcess]
NODES: dict[str, Any] = {
    "root": node(
        "Sequence",
        {"serviceName": "double", "dependency": "Hard"},
        {"nodeName": "both", "data": "$response"},
    ),
    "both": node("Ensemble", {"name": "t", "serviceName": "triple"}, {"name": "d", "serviceName": "double"}),
}
METADATA = {
    "name": "flowers",
    "versions": ["1"],
    "platform": "kserve_inferencegraph",
    "inputs": [{"name": "X", "datatype": "FP32", "shape": [-1, 2]}],
    "outputs": [{"name": name, "datatype": "FP32", "shape": [-1, 2]} for name in ("t.Y", "d.Y")],
}
READY = {"name": "flowers", "version": "1", "state": "READY"}
NO_VERSION = {"error": "Request for unknown model: 'flowers' version 2 is not found"}


@pytest.fixture(scope="module")
def server(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory) -> ServerProcess:
    folder = tmp_path_factory.mktemp("graph")
    for name, factor in (("double", 2.0), ("triple", 3.0)):
        add_model(folder / "models", name, times(factor))
    return serve_module(folder / "models", f"--graph={write_graph(folder, NODES)}")


def index_of(server: ServerProcess) -> list[dict[str, str]]:
    lines = json.loads(post_graph(server.http, b"{}", "/v2/repository/index")[2])
    return [line for line in lines if line["name"] == "flowers"]


def test_a_graph_has_the_metadata_of_its_steps(server: ServerProcess) -> None:
    assert get_document(server.http, "/v2/models/flowers") == (200, METADATA)
    assert get_document(server.http, "/v2/models/flowers/versions/1") == (200, METADATA)
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        described = client.get_model_metadata("flowers")
    ports = [
        {"name": port.name, "datatype": port.datatype, "shape": list(port.shape)}
        for port in (*described.inputs, *described.outputs)
    ]
    assert (described.name, list(described.versions)) == ("flowers", ["1"])
    assert ports == [*METADATA["inputs"], *METADATA["outputs"]]


def test_a_graph_is_ready_and_in_the_index(server: ServerProcess) -> None:
    assert get_document(server.http, "/v2/models/flowers/ready") == (200, None)
    assert get_document(server.http, "/v1/models/flowers") == (200, {"name": "flowers", "ready": True})
    assert get_document(server.http, "/v1/models") == (200, {"models": ["double", "flowers", "triple"]})
    status, version = get_document(server.http, "/v1/models/flowers/versions/1")
    assert (status, version["model_version_status"][0]["state"]) == (200, "AVAILABLE")
    assert index_of(server) == [READY]
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        assert client.is_model_ready("flowers")
        assert client.is_model_ready("flowers", "1")
        lines = client.get_model_repository_index().models
    assert [(line.version, line.state) for line in lines if line.name == "flowers"] == [("1", "READY")]


def test_a_name_or_version_that_is_no_graph_is_an_unknown_model(server: ServerProcess) -> None:
    for path in ("/v2/models/flowers/versions/2", "/v2/models/flowers/versions/2/ready"):
        assert get_document(server.http, path)[1] == NO_VERSION, path
    status, _, body = post_graph(server.http, {"inputs": []}, "/v2/models/flowers/versions/2/infer")
    assert (status, json.loads(body)) == (404, NO_VERSION)
    unknown = "Request for unknown model: 'flower' is not found"
    assert get_document(server.http, "/v2/models/flower")[1]["error"].startswith(unknown)
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        with pytest.raises(InferenceServerException, match="'flowers' version 2 is not found"):
            client.get_model_metadata("flowers", "2")
        with pytest.raises(InferenceServerException, match="'flower' is not found"):
            client.is_model_ready("flower")


def test_a_graph_is_ready_while_the_models_of_its_hard_steps_are(serve: Serve, tmp_path: Path) -> None:
    """A soft step may fail: `triple` is not loaded."""
    for name in ("double", "triple"):
        add_model(tmp_path / "models", name, times())
    server = serve(
        tmp_path / "models",
        f"--graph={write_graph(tmp_path, NODES)}",
        "--model-control-mode=explicit",
        "--load-model=double",
    )
    assert get_document(server.http, "/v2/models/flowers/ready")[0] == 200
    assert post_graph(server.http, b"{}", "/v2/repository/models/double/unload")[0] == 200
    assert get_document(server.http, "/v2/models/flowers/ready") == (400, {"error": "Model version not ready"})
    refused = {"error": "Model with name flowers is not ready."}
    assert get_document(server.http, "/v1/models/flowers") == (503, refused)
    reason = "its step calls the model 'double', which is not ready"
    assert index_of(server) == [READY | {"state": "UNAVAILABLE", "reason": reason}]
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        assert not client.is_model_ready("flowers")
    # What its steps declare is not known any more.
    assert get_document(server.http, "/v2/models/flowers")[1]["inputs"] == []
    assert post_graph(server.http, b"{}", "/v2/repository/models/double/load")[0] == 200
    assert get_document(server.http, "/v2/models/flowers/ready")[0] == 200
    assert index_of(server) == [READY]


def test_a_model_has_its_name_before_a_graph(serve: Serve, tmp_path: Path) -> None:
    add_model(tmp_path / "models", "flowers", times())
    nodes = {"root": node("Sequence", {"serviceUrl": "http://127.0.0.1:9/m", "dependency": "Hard"})}
    server = serve(tmp_path / "models", f"--graph={write_graph(tmp_path, nodes)}")
    assert get_document(server.http, "/v2/models/flowers")[1]["platform"] == "onnxruntime_onnx"
    assert [line["state"] for line in index_of(server)] == ["READY"]


def test_a_graph_of_steps_elsewhere_declares_no_tensors(serve: Serve, tmp_path: Path) -> None:
    nodes = {"root": node("Sequence", {"serviceUrl": "http://127.0.0.1:9/m", "dependency": "Hard"})}
    server = serve(f"--graph={write_graph(tmp_path, nodes)}")
    assert get_document(server.http, "/v2/models/flowers") == (200, METADATA | {"inputs": [], "outputs": []})
    assert get_document(server.http, "/v2/models/flowers/ready") == (200, None)
