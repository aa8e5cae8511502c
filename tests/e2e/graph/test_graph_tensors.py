"""The graph as a model of V2: over HTTP with JSON and binary tensors, and over gRPC."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from support.graph_steps import node, post_graph, write_graph
from support.models import add_model, times
from support.server import ServerProcess
from tritonclient.utils import InferenceServerException

Serve = Callable[..., ServerProcess]
NODES: dict[str, Any] = {
    "root": node("Switch", {"nodeName": "chain", "condition": 'inputs.#(name=="X")'}),
    "chain": node(
        "Sequence",
        {"serviceName": "double", "dependency": "Hard"},
        {"nodeName": "both", "data": "$response"},
    ),
    "both": node("Ensemble", {"name": "t", "serviceName": "triple"}, {"name": "d", "serviceName": "double"}),
}


@pytest.fixture(scope="module")
def server(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory) -> ServerProcess:
    folder = tmp_path_factory.mktemp("graph")
    for name, factor in (("double", 2.0), ("triple", 3.0)):
        add_model(folder / "models", name, times(factor))
    return serve_module(folder / "models", f"--graph={write_graph(folder, NODES)}")


def inputs_of(library: Any, name: str = "X", columns: int = 2) -> list[Any]:
    tensor = library.InferInput(name, [1, columns], "FP32")
    tensor.set_data_from_numpy(np.arange(1, columns + 1, dtype=np.float32)[None])
    return [tensor]


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_tensors_go_from_step_to_step(server: ServerProcess, protocol: str) -> None:
    """Outputs whose names collide have the names of their steps in front; over HTTP they are binary."""
    library = getattr(tritonclient, protocol)
    with library.InferenceServerClient(getattr(server, protocol)) as client:
        answer = client.infer("flowers", inputs_of(library), request_id="seven")
        assert answer.as_numpy("t.Y").tolist() == [[6, 12]]
        assert answer.as_numpy("d.Y").tolist() == [[4, 8]]
        wanted = [library.InferRequestedOutput("d.Y")]
        one = client.infer("flowers", inputs_of(library), outputs=wanted)
        assert (one.as_numpy("d.Y").tolist(), one.as_numpy("t.Y")) == ([[4, 8]], None)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_errors_of_steps_are_the_graphs(server: ServerProcess, protocol: str) -> None:
    library = getattr(tritonclient, protocol)
    with library.InferenceServerClient(getattr(server, protocol)) as client:
        with pytest.raises(InferenceServerException, match="unexpected shape for input 'X'"):
            client.infer("flowers", inputs_of(library, columns=3))
        with pytest.raises(InferenceServerException, match="None of the routes matched"):
            client.infer("flowers", inputs_of(library, name="Z"))
        with pytest.raises(InferenceServerException, match="unexpected inference output 'none' for graph 'flowers'"):
            client.infer("flowers", inputs_of(library), outputs=[library.InferRequestedOutput("none")])


def test_json_of_v2_answers_by_the_graphs_name(server: ServerProcess) -> None:
    tensor = {"name": "X", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}
    status, kind, body = post_graph(server.http, {"id": "7", "inputs": [tensor]}, "/v2/models/flowers/infer")
    assert (status, kind) == (200, "application/json")
    answer = json.loads(body)
    assert (answer["model_name"], answer["id"]) == ("flowers", "7")
    assert {output["name"]: output["data"] for output in answer["outputs"]} == {"t.Y": [6, 12], "d.Y": [4, 8]}
    # What is no request is refused as for any model.
    refused = post_graph(server.http, b"{", "/v2/models/flowers/infer")
    assert refused == post_graph(server.http, b"{", "/v2/models/double/infer")


def test_a_graph_with_steps_elsewhere_takes_json_alone(serve: Serve, tmp_path: Path) -> None:
    add_model(tmp_path / "models", "double", times())
    nodes = {"root": node("Sequence", {"serviceName": "double"}, {"serviceUrl": "http://127.0.0.1:9/m"})}
    server = serve(tmp_path / "models", f"--graph={write_graph(tmp_path, nodes)}")
    text = "graph 'flowers' calls http://127.0.0.1:9/m, which is no model of this server, so it takes no tensors"
    with (
        tritonclient.grpc.InferenceServerClient(server.grpc) as client,
        pytest.raises(InferenceServerException, match=text),
    ):
        client.infer("flowers", inputs_of(tritonclient.grpc))
