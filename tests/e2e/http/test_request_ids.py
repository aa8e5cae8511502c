"""`X-Request-Id`: the id of a request whose body has none, in answer, log and traces."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpc_client
from support.models import add_model
from support.server import ServerProcess

INPUT = {"name": "X", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}
LONGEST = "x" * 128


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    return serve_module(repository, "--log-verbose=1")


def infer(
    connection: http.client.HTTPConnection, headers: dict[str, str], path: str = "infer", **body: Any
) -> tuple[str | None, dict[str, Any]]:
    """The id in the head of the answer, and the answer."""
    connection.request("POST", f"/v2/models/double/{path}", json.dumps(body), headers)
    response = connection.getresponse()
    return response.headers["X-Request-Id"], json.loads(response.read())


@pytest.mark.parametrize("given", ["b7f0-12ab", "with space", LONGEST])
def test_the_header_is_the_id_of_a_request_without_one(
    server: ServerProcess, connection: http.client.HTTPConnection, given: str
) -> None:
    returned, answer = infer(connection, {"X-Request-Id": given}, inputs=[INPUT])
    assert (returned, answer["id"]) == (given, given)
    server.wait_for_output(rf"\[request id: {given}\] model 'double' version 1 answered")


def test_generate_takes_the_header_too(connection: http.client.HTTPConnection) -> None:
    assert infer(connection, {"X-Request-Id": "g"}, "generate", X=[1, 2])[1]["id"] == "g"


def test_the_id_of_a_body_stays_and_the_header_comes_back(connection: http.client.HTTPConnection) -> None:
    returned, answer = infer(connection, {"X-Request-Id": "head"}, inputs=[INPUT], id="body")
    assert (returned, answer["id"]) == ("head", "body")


@pytest.mark.parametrize("given", [None, "", LONGEST + "x", "a\tb", "\xe9"])
def test_what_is_no_id_is_ignored(connection: http.client.HTTPConnection, given: str | None) -> None:
    returned, answer = infer(connection, {} if given is None else {"X-Request-Id": given}, inputs=[INPUT])
    assert (returned, "id" in answer) == (None, False)


def test_refusals_and_other_routes_return_the_header(
    server: ServerProcess, connection: http.client.HTTPConnection
) -> None:
    returned, answer = infer(connection, {"X-Request-Id": "refused"}, inputs="no list")
    assert (returned, "error" in answer) == ("refused", True)
    server.wait_for_output(r"\[request id: refused\] a request for model 'double' was refused")
    connection.request("GET", "/v2", headers={"X-Request-Id": "meta"})
    response = connection.getresponse()
    response.read()
    assert response.headers["X-Request-Id"] == "meta"


def test_each_head_gives_its_own_id_to_equal_bodies_that_are_cached(
    tmp_path_factory: pytest.TempPathFactory, serve: Callable[..., ServerProcess]
) -> None:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    with (repository / "double" / "config.pbtxt").open("a", encoding="utf-8") as config:
        config.write("\nresponse_cache { enable: true }\n")
    server = serve(repository, "--cache-config=local,size=1048576")
    connection = http.client.HTTPConnection(server.http, timeout=60)
    for given in [None, None, None, "1", "2", None, "3"]:
        _, answer = infer(connection, {} if given is None else {"X-Request-Id": given}, inputs=[INPUT])
        assert answer.get("id") == given
    connection.close()


def test_metadata_of_grpc_is_the_id_of_a_call(server: ServerProcess) -> None:
    with grpc_client.InferenceServerClient(server.grpc) as client:
        tensor = grpc_client.InferInput("X", [1, 2], "FP32")
        tensor.set_data_from_numpy(np.ones((1, 2), np.float32))
        answer = client.infer("double", [tensor], headers={"x-request-id": "over-grpc"})
        assert answer.get_response().id == "over-grpc"
        own = client.infer("double", [tensor], request_id="own", headers={"x-request-id": "over-grpc"})
        assert own.get_response().id == "own"
    server.wait_for_output(r"\[request id: over-grpc\] model 'double' version 1 answered")


def test_the_head_of_an_answer_over_grpc_returns_the_id(server: ServerProcess) -> None:
    with grpc.insecure_channel(server.grpc) as channel:
        live = channel.unary_unary("/inference.GRPCInferenceService/ServerLive")
        _, call = live.with_call(b"", metadata=[("x-request-id", "seven")], timeout=60)
        assert ("x-request-id", "seven") in [(pair.key, pair.value) for pair in call.initial_metadata()]
