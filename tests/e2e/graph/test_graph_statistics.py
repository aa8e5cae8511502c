"""The configuration and the statistics of a graph, and the tools that read them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import alipes
import numpy as np
import pytest
import tritonclient.grpc
from alipes.advise.findings import Surroundings, find
from alipes.advise.reading import Reading, flows
from alipes.cli import main
from alipes.errors import AlipesError, NotFound
from alipes.loadtest import Closed, Measuring, ModelRequests, run
from support.command import alipes as command
from support.graph_steps import get_document, node, post_graph, write_graph
from support.models import add_model, times
from support.notes import Notes
from support.python_models import DECOUPLED, REPORTS, add_python_model
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

Serve = Callable[..., ServerProcess]

NODES: dict[str, Any] = {
    "root": node(
        "Sequence",
        {"serviceName": "double", "dependency": "Hard"},
        {"nodeName": "both", "data": "$response"},
    ),
    "both": node("Ensemble", {"name": "t", "serviceName": "triple"}, {"name": "d", "serviceName": "double"}),
}
BATCHED = """
backend: "onnxruntime"
max_batch_size: {rows}
input [ {{ name: "X" data_type: TYPE_FP32 dims: [ 2 ] }} ]
output [ {{ name: "Y" data_type: TYPE_FP32 dims: [ 2 ] }} ]
"""
ROWS = np.ones((3, 2), np.float32)


@pytest.fixture(scope="module")
def server(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory) -> ServerProcess:
    folder = tmp_path_factory.mktemp("graph")
    for name, factor, rows in (("double", 2.0, 8), ("triple", 3.0, 4)):
        add_model(folder / "models", name, times(factor), config=BATCHED.format(rows=rows))
    return serve_module(folder / "models", f"--graph={write_graph(folder, NODES)}")


def tensor(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "data_type": "TYPE_FP32", "dims": [2], **more}


def counts(server: ServerProcess, name: str = "flowers") -> tuple[int, int, int]:
    """Successes, failures and rows of a name."""
    (found,) = get_document(server.http, f"/v2/models/{name}/stats")[1]["model_stats"]
    requests = found["inference_stats"]
    return requests["success"]["count"], requests["fail"]["count"], found["inference_count"]


def test_a_graph_has_the_configuration_of_a_model(server: ServerProcess) -> None:
    """It is batched as its models are, by the smallest of them."""
    status, config = get_document(server.http, "/v2/models/flowers/versions/1/config")
    assert (status, config) == (
        200,
        {
            "name": "flowers",
            "platform": "kserve_inferencegraph",
            "backend": "",
            "version_policy": {"latest": {"num_versions": 1}},
            "max_batch_size": 4,
            "input": [tensor("X")],
            "output": [tensor("t.Y"), tensor("d.Y")],
            "instance_group": [],
            "model_transaction_policy": {"decoupled": False},
        },
    )
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        over_grpc = client.get_model_config("flowers", as_json=True)["config"]
    assert (over_grpc["max_batch_size"], over_grpc["platform"]) == (4, "kserve_inferencegraph")
    assert over_grpc["version_policy"] == config["version_policy"]
    for side in ("input", "output"):
        found = [(port["name"], port["data_type"], [int(size) for size in port["dims"]]) for port in over_grpc[side]]
        assert found == [(port["name"], port["data_type"], port["dims"]) for port in config[side]]
    for address in (f"http://{server.http}", f"grpc://{server.grpc}"):
        with alipes.Client(address) as client, pytest.raises(NotFound, match="'flowers' version 2 is not found"):
            client.config("flowers", "2")


def test_requests_on_every_path_count_once(server: ServerProcess) -> None:
    """With tensors over both protocols, with JSON at any path, and those that fail."""
    before, steps = counts(server), counts(server, "triple")
    with alipes.Client(f"grpc://{server.grpc}") as over_grpc, alipes.Client(f"http://{server.http}") as over_http:
        for client in (over_grpc, over_http):
            assert client.infer("flowers", {"X": ROWS})["t.Y"].tolist() == [[6, 6]] * 3
        document = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}
        assert post_graph(server.http, document)[0] == 200
        unfit = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}]}
        assert post_graph(server.http, unfit, "/v2/models/flowers/infer")[0] == 400
        assert post_graph(server.http, {"instances": [1]})[0] == 400
        success, fail, rows = (after - then for after, then in zip(counts(server), before, strict=True))
        # Of JSON the graph knows no rows.
        assert (success, fail, rows) == (3, 2, 7)
        # The JSON that `double` answers with is no request for `triple`.
        assert counts(server, "triple")[0] - steps[0] == 2
        of_both = [client.statistics("flowers")[0]["inference_stats"] for client in (over_grpc, over_http)]
        names = [row["name"] for row in over_grpc.statistics()]
    assert of_both[0]["success"] == of_both[1]["success"]
    assert int(of_both[0]["success"]["ns"]) == int(of_both[0]["compute_infer"]["ns"]) > 0
    assert names == ["double", "flowers", "triple"]
    status, refusal = get_document(server.http, "/v2/models/flowers/versions/2/stats")
    assert (status, refusal) == (400, {"error": "requested model version is not available for model 'flowers'"})


def test_metrics_count_what_the_statistics_count(server: ServerProcess) -> None:
    with alipes.Client(f"http://{server.http}") as client:
        client.infer("flowers", {"X": ROWS})
    success, fail, rows = counts(server)
    with urlopen(f"http://{server.metrics}/metrics", timeout=TIMEOUT_S) as answer:
        lines = answer.read().decode().splitlines()
    of_graph = dict(line.rsplit(" ", 1) for line in lines if 'model="flowers"' in line)
    labels = '{model="flowers",version="1"}'
    assert float(of_graph[f"nv_inference_request_success{labels}"]) == success
    assert float(of_graph[f"nv_inference_count{labels}"]) == rows
    failures = [float(value) for name, value in of_graph.items() if name.startswith("nv_inference_request_failure")]
    assert sum(failures) == fail


def test_a_load_test_and_perf_analyzer_measure_a_graph(server: ServerProcess) -> None:
    before = counts(server)[0]
    for address in (f"http://{server.http}", f"grpc://{server.grpc}"):
        measured = run(ModelRequests("flowers", batch=4), Closed(2), address=address, measuring=Measuring(count=40))
        (level,) = measured.levels
        assert (level.result.answers, level.result.failures) == (40, {})
    assert counts(server)[0] - before >= 80
    windows = ("-p", "200", "-s", "999")
    analyzed = command("perf_analyzer", "-m", "flowers", "-u", server.grpc, "-i", "grpc", "-b", "4", *windows)
    assert analyzed.code == 0, analyzed.err
    assert "Inference count:" in analyzed.out and "Throughput:" in analyzed.out
    assert "compute infer" in analyzed.out


def test_explain_shows_the_graph_before_its_models(server: ServerProcess, capsys: pytest.CaptureFixture[str]) -> None:
    status, document = get_document(server.http, "/v2/models/flowers/explain")
    assert status == 200
    first, *models = document["models"]
    assert (first["name"], first["version"], first["ready"]) == ("flowers", "1", True)
    assert first["scheduling"]["kind"] == "graph"
    assert first["ensemble"] == {"requests": 0, "held_back": 0, "members": ["double:1", "triple:1"]}
    assert [model["name"] for model in models] == ["double", "triple"]
    assert main(["explain", "flowers", f"--url={server.http}"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("flowers, version 1: a graph")
    assert "double:1, triple:1" in shown


def test_advice_on_a_graph_names_its_models(server: ServerProcess) -> None:
    with alipes.Client(f"http://{server.http}") as client:
        before = Reading.now(client)
        for _ in range(30):
            client.infer("flowers", {"X": ROWS})
        found = {flow.model: flow for flow in flows(before, Reading.now(client), client)}
    assert {name: flow.requests for name, flow in found.items()} == {"flowers": 30, "double": 60, "triple": 30}
    advice = find(found["flowers"], Surroundings(0.1))
    assert advice.advice == "look at its models: a graph has no queue and no instances of its own"


def test_a_model_has_the_configuration_and_statistics_of_its_name(serve: Serve, tmp_path: Path) -> None:
    for name in ("flowers", "double", "triple"):
        add_model(tmp_path / "models", name, times())
    server = serve(tmp_path / "models", f"--graph={write_graph(tmp_path, NODES)}")
    assert get_document(server.http, "/v2/models/flowers/config")[1]["backend"] == "onnxruntime"
    document = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}
    assert post_graph(server.http, document)[0] == 200
    assert counts(server)[0] == 0
    assert [row["name"] for row in get_document(server.http, "/v2/models/stats")[1]["model_stats"]] == [
        "double",
        "flowers",
        "triple",
    ]


# Answers nobody before its caller has left.
WAITS = """
class TritonPythonModel:
    def execute(self, requests):
        sender = requests[0].get_response_sender()
        sender.send(answer(Y=given(requests[0])))
        while not sender.is_cancelled():
            time.sleep(0.002)
        sender.send(flags=FINAL)
        note("left")
"""


def test_streams_of_a_graph_count_by_how_they_end(serve: Serve, tmp_path: Path) -> None:
    notes = Notes(tmp_path / "notes")
    ways = node(
        "Switch",
        {"serviceName": "waits", "condition": "inputs.0.data.#(==100)"},
        {"serviceName": "counts", "condition": "inputs"},
    )
    add_python_model(tmp_path / "models", "counts", REPORTS, config=DECOUPLED)
    add_python_model(tmp_path / "models", "waits", WAITS, config=DECOUPLED)
    server = serve(
        tmp_path / "models", f"--graph={write_graph(tmp_path, {'root': ways})}", environment=notes.environment
    )
    config = get_document(server.http, "/v2/models/flowers/config")[1]
    assert (config["max_batch_size"], config["model_transaction_policy"]) == (0, {"decoupled": True})
    assert config["input"] == [{"name": "X", "data_type": "TYPE_INT32", "dims": [-1]}]
    assert post_graph(server.http, {"X": [5, 6]}, "/v2/models/flowers/generate_stream")[0] == 200
    with alipes.Client(f"grpc://{server.grpc}") as client:
        assert len(list(client.stream("flowers", {"X": np.array([5, 6, 7], np.int32)}))) == 3
        until(lambda: counts(server) == (2, 0, 2))
        responses = client.stream("flowers", {"X": np.array([100], np.int32)})
        assert next(responses)["Y"].tolist() == [100]
        assert get_document(server.http, "/v2/models/flowers/explain")[1]["models"][0]["ensemble"]["requests"] == 1
        responses.close()
    notes.read("left")
    until(lambda: counts(server) == (2, 1, 2))
    # `infer` takes one response alone.
    with (
        alipes.Client(f"http://{server.http}") as client,
        pytest.raises(AlipesError, match="ends with the decoupled model"),
    ):
        client.infer("flowers", {"X": np.array([5], np.int32)})
    assert counts(server) == (2, 2, 2)
