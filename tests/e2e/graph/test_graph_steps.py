"""Graphs whose steps are models of this server, services elsewhere, and other nodes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.graph_steps import Steps, node, post_graph, write_graph
from support.models import add_model, times
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]
ROWS = {"instances": [[1.5, 2]]}
CAUSE = '{"error":"Failed to process request","cause":"%s"}'


@pytest.fixture
def steps() -> Iterator[Steps]:
    with Steps() as services:
        yield services


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    for name, factor in (("double", 2.0), ("triple", 3.0)):
        add_model(folder, name, times(factor))
    return folder


def test_models_of_the_server_are_steps_without_a_socket(repository: Path, tmp_path: Path, serve: Serve) -> None:
    """By name, and by the address that KServe would find for it, which leads nowhere here."""
    graph = write_graph(
        tmp_path,
        {
            "root": node(
                "Sequence",
                {"serviceName": "double"},
                {
                    "serviceUrl": "http://triple-predictor.default.svc/v1/models/triple:predict",
                    "data": "$response",
                    "mapPredictionsToInstances": True,
                },
                {"nodeName": "both", "data": "$response", "mapPredictionsToInstances": True},
            ),
            "both": node("Ensemble", {"serviceName": "double"}, {"name": "t", "serviceUrl": "http://triple.default/"}),
        },
    )
    server = serve(repository, f"--graph={graph}")
    expected = {"0": {"predictions": [[18, 24]]}, "t": {"predictions": [[27, 36]]}}
    for path in ("/", "/any/path", "/v1/models/flowers:predict", "/x"):
        status, kind, body = post_graph(server.http, ROWS, path)
        assert (status, kind, json.loads(body)) == (200, "application/json", expected), path
    # What the server has itself stays where it is.
    assert json.loads(post_graph(server.http, ROWS, "/v1/models/double:predict")[2]) == {"predictions": [[3, 4]]}


def test_a_local_step_answers_what_its_model_answers_over_http(repository: Path, tmp_path: Path, serve: Serve) -> None:
    graph = write_graph(tmp_path, {"root": node("Sequence", {"serviceName": "double"})})
    server = serve(repository, f"--graph={graph}")
    tensor = {"name": "X", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}
    for path, body in (
        ("/v1/models/double:predict", json.dumps(ROWS).encode()),
        ("/v2/models/double/infer", json.dumps({"inputs": [tensor]}).encode()),
        ("/v2/models/double/infer", json.dumps({"inputs": [tensor | {"shape": [2]}]}).encode()),
        ("/v1/models/double:predict", b'{"instances": [[1]]}'),
        ("/v1/models/double:predict", b"no JSON"),
    ):
        status, _, content = post_graph(server.http, body, path)
        assert post_graph(server.http, body)[::2] == (status, content), body


def test_steps_elsewhere_are_called_over_connections_that_stay(steps: Steps, tmp_path: Path, serve: Serve) -> None:
    graph = write_graph(
        tmp_path,
        {
            "root": node(
                "Sequence",
                {"serviceUrl": steps.url("/first?a=b")},
                {"serviceUrl": steps.says("/second", 201, {"predictions": [1]}), "data": "$response"},
            )
        },
    )
    server = serve(
        f"--graph={graph}", "--propagate-headers=X-T.*", "--propagate-headers=^Unseen$", "--http-thread-count=1"
    )
    trace = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
    for _ in range(3):
        answer = post_graph(server.http, b'{"a":1}', "/", trace | {"X-Team": "optics", "X-Other": "1"})
        assert answer == (201, "application/json", b'{"predictions": [1]}')
    assert steps.bodies("/first?a=b") == [b'{"a":1}'] * 3 == steps.bodies("/second")
    assert len({received.connection for received in steps.received}) == 1
    seen = steps.received[-1].headers
    assert (seen["x-team"], seen["content-type"]) == ("optics", "application/json")
    assert seen["traceparent"] == trace["traceparent"]
    assert "x-other" not in seen


def test_a_splitter_divides_requests_by_weight(steps: Steps, tmp_path: Path, serve: Serve) -> None:
    targets = [
        {"serviceUrl": steps.says(f"/{weight}", 200, {"weight": weight}), "weight": weight} for weight in (25, 75, 0)
    ]
    server = serve(f"--graph={write_graph(tmp_path, {'root': node('Splitter', *targets)})}")
    for _ in range(200):
        assert post_graph(server.http, b"{}")[0] == 200
    counts = {weight: len(steps.bodies(f"/{weight}")) for weight in (25, 75, 0)}
    assert counts[0] == 0
    # Six standard deviations: 1 in 500 million runs would be outside.
    assert abs(counts[25] - 50) <= 37, counts


def test_a_switch_takes_the_first_condition_that_is_met(steps: Steps, tmp_path: Path, serve: Serve) -> None:
    graph = write_graph(
        tmp_path,
        {
            "root": node(
                "Switch",
                {"serviceUrl": steps.says("/one", 200, 1), "condition": 'instances.#(modelId=="1")'},
                {"serviceUrl": steps.says("/two", 200, 2), "condition": '[@this].#(instances.0.modelId=="2")'},
            )
        },
    )
    server = serve(f"--graph={graph}")
    for number in ("1", "2"):
        assert post_graph(server.http, {"instances": [{"modelId": number}]})[2] == number.encode()
    unmatched = CAUSE % "None of the routes matched with the switch condition"
    for body in (b'{"instances": [{"modelId": "3"}]}', b"no JSON", b""):
        assert post_graph(server.http, body) == (404, "application/json", unmatched.encode())


@pytest.mark.parametrize("dependency", ["Soft", "Hard"])
def test_a_step_that_fails_is_judged_by_its_dependency(
    steps: Steps, tmp_path: Path, serve: Serve, dependency: str
) -> None:
    failing = {"serviceUrl": steps.says("/fail", 500, {"error": "no luck"}), "dependency": dependency, "name": "fail"}
    good = {"serviceUrl": steps.says("/good", 200, {"b": 1.0, "a": "<"}), "data": "$response"}
    graph = write_graph(
        tmp_path,
        {
            "root": node(
                "Switch",
                {"nodeName": "sequence", "condition": "sequence"},
                {"nodeName": "ensemble", "condition": "ensemble"},
            ),
            "sequence": node("Sequence", failing, good),
            "ensemble": node("Ensemble", failing, good),
        },
    )
    server = serve(f"--graph={graph}")
    ran = post_graph(server.http, {"sequence": 1})
    merged = post_graph(server.http, {"ensemble": 1})
    if dependency == "Hard":
        assert ran == (500, "application/json", b'{"error": "no luck"}')
        assert merged == (500, "application/json", b'{"error":"no luck"}')
        assert steps.bodies("/good") in ([], [b'{"ensemble": 1}'])
    else:
        assert ran == (200, "application/json", b'{"b": 1.0, "a": "<"}')
        assert steps.bodies("/good")[0] == b'{"error": "no luck"}'
        assert merged == (200, "application/json", b'{"1":{"a":"\\u003c","b":1},"fail":{"error":"no luck"}}')


def test_kserves_router_arguments_start_the_same_graph(steps: Steps, serve: Serve) -> None:
    """As in a pod: the specification as JSON, where a URL stands beside a name, and header patterns as a variable."""
    step = {"serviceName": "m", "serviceUrl": steps.url("/m"), "unknown": 1}
    spec = {"nodes": {"root": node("Sequence", step)}, "resources": {}}
    environment = {"PROPAGATE_HEADERS": "Authorization,X-Team"}
    words = ("--inferencegraph-name=flowers", f"--graph-json={json.dumps(spec)}")
    server = serve(*words, environment=environment)
    assert post_graph(server.http, b"{}", "/", {"Authorization": "Bearer x"})[0] == 200
    assert steps.received[0].headers["authorization"] == "Bearer x"
    assert post_graph(server.http, b"{}", "/readyz") == (200, "", b"")
