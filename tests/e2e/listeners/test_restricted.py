"""Restricted groups, beyond what the recorded exchanges show."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator

import grpc
import pytest
from support.models import add_model
from support.server import ServerDidNotStart, ServerProcess

BODY = json.dumps({"inputs": [{"name": "X", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]})
INFER = "/v2/models/double/infer"
SERVICE = "/inference.GRPCInferenceService"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    return serve_module(
        repository,
        "--http-restricted-api=inference,model-repository:Infer-Key=word",
        "--grpc-restricted-protocol=inference:Infer-Key=word",
    )


@pytest.fixture
def connection(server: ServerProcess) -> Iterator[http.client.HTTPConnection]:
    opened = http.client.HTTPConnection(server.http, timeout=30)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", INFER),
        ("PUT", INFER),
        ("POST", INFER + "?query"),
        ("POST", "/v2/models/double/versions/1/infer"),
        ("POST", "/v2/models/double/generate"),
        ("POST", "/v2/repository/models/double/load"),
        ("POST", "/v2/repository/index"),
    ],
)
def test_the_header_is_checked_before_anything_else(
    connection: http.client.HTTPConnection, method: str, path: str
) -> None:
    connection.request(method, path, "x" * 1_000_000)
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())["error"]) == (
        403,
        "This API is restricted, expecting header 'Infer-Key'",
    )
    # The refused body is out of the way, and the connection serves on.
    connection.request("POST", INFER, BODY, {"infer-key": "word"})
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())["outputs"][0]["data"]) == (200, [2.0, 4.0])


@pytest.mark.parametrize("value", ["", "wor", "words", "WORD"])
def test_another_value_does_not_open_it(connection: http.client.HTTPConnection, value: str) -> None:
    connection.request("POST", INFER, BODY, {"infer-key": value})
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 403


@pytest.mark.parametrize("method", ["ModelInfer", "ModelStreamInfer"])
def test_calls_and_streams_need_the_metadata(server: ServerProcess, method: str) -> None:
    with grpc.insecure_channel(server.grpc) as channel, pytest.raises(grpc.RpcError) as caught:
        list(channel.stream_stream(f"{SERVICE}/{method}")(iter([b""]), timeout=30))
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert caught.value.details() == "This protocol is restricted, expecting header 'triton-grpc-protocol-Infer-Key'"


def test_a_stream_with_the_metadata_is_let_in(server: ServerProcess) -> None:
    metadata = (("triton-grpc-protocol-infer-key", "word"),)
    with grpc.insecure_channel(server.grpc) as channel:
        stream = channel.stream_stream(f"{SERVICE}/ModelStreamInfer")
        assert list(stream(iter([]), timeout=30, metadata=metadata)) == []


def test_a_group_that_one_protocol_leaves_open_is_warned_of(server: ServerProcess) -> None:
    server.wait_for_output(r"W\d+ .*--http-restricted-api guards model-repository, and gRPC leaves it open: ")


def test_a_group_that_does_not_exist_ends_the_start(
    tmp_path_factory: pytest.TempPathFactory, serve: Callable[..., ServerProcess]
) -> None:
    with pytest.raises(ServerDidNotStart) as caught:
        serve(tmp_path_factory.mktemp("models"), "--http-restricted-api=everything:key=value")
    assert caught.value.exit_code == 2
    assert "unknown restricted api 'everything'" in caught.value.output
