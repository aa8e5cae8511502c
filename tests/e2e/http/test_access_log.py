"""A verbose log has one line for each request that a listener received."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from support.models import add_model
from support.server import ServerProcess

BODY = json.dumps({"id": "7", "inputs": [{"name": "X", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]})
MS = r"in \d+\.\d{3} ms"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    return serve_module(repository, "--log-verbose=1")


def get(address: str, path: str, method: str = "GET", body: str | None = None) -> None:
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request(method, path, body)
    connection.getresponse().read()
    connection.close()


def test_a_request_over_http_is_a_line(server: ServerProcess) -> None:
    get(server.http, "/v2/models/double/infer?token=secret", "POST", BODY)
    server.wait_for_output(rf"POST /v2/models/double/infer 200 {MS}, model 'double', id '7', from 127\.0\.0\.1")
    assert "secret" not in server.output
    get(server.http, "/v2/models/nobody")
    server.wait_for_output(rf"GET /v2/models/nobody 404 {MS}, model 'nobody', from 127\.0\.0\.1")
    get(server.metrics, "/metrics")
    server.wait_for_output(rf"GET /metrics 200 {MS}, from 127\.0\.0\.1")


def test_a_call_over_grpc_is_a_line(server: ServerProcess) -> None:
    service = "/inference.GRPCInferenceService"
    with grpc.insecure_channel(server.grpc) as channel:
        channel.unary_unary(f"{service}/ServerLive")(b"", timeout=60)
        with pytest.raises(grpc.RpcError):
            channel.unary_unary(f"{service}/Nothing")(b"", timeout=60)
        named = b"\x0a\x06nobody\x1a\x019"  # model_name and id
        with pytest.raises(grpc.RpcError):
            channel.unary_unary(f"{service}/ModelInfer")(named, timeout=60)
        list(channel.stream_stream(f"{service}/ModelStreamInfer")(iter([named]), timeout=60))
    server.wait_for_output(rf"gRPC {service}/ServerLive OK {MS}, from 127\.0\.0\.1")
    server.wait_for_output(rf"gRPC {service}/Nothing UNIMPLEMENTED {MS}, from 127\.0\.0\.1")
    server.wait_for_output(rf"gRPC {service}/ModelInfer NOT_FOUND {MS}, model 'nobody', id '9', from 127\.0\.0\.1")
    server.wait_for_output(rf"gRPC {service}/ModelStreamInfer OK {MS}, model 'nobody', from 127\.0\.0\.1")


def test_an_id_forges_no_line(server: ServerProcess) -> None:
    get(
        server.http, "/v2/models/double/infer", "POST", BODY.replace('"7"', json.dumps("a\nI1125 forged\x1b[31m\u2028"))
    )
    server.wait_for_output(r"POST \S+ 200 .*forged")
    forged = [line for line in server.output.splitlines() if "forged" in line]
    assert forged and all(" pump.py:" in line and line.isprintable() for line in forged)


def test_a_client_that_leaves_is_a_line(server: ServerProcess) -> None:
    host, _, port = server.http.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60) as client:
        client.sendall(b"POST /v2/models/double/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{")
    server.wait_for_output(rf"POST /v2/models/double/infer (499|400) {MS}")


def test_a_log_of_documents_has_the_fields_of_a_request(tmp_path: Path, serve: Callable[..., ServerProcess]) -> None:
    add_model(tmp_path, "double")
    server = serve(tmp_path, "--log-verbose=1", "--log-format=json")
    get(server.http, "/v2/models/double/infer", "POST", BODY)
    server.wait_for_output(r'"message": "POST ')
    assert server.stop() == 0
    documents = [json.loads(line) for line in server.output.splitlines()]
    (access,) = [document for document in documents if document.get("protocol") == "http"]
    expected = {
        "method": "POST",
        "path": "/v2/models/double/infer",
        "status": 200,
        "request_id": "7",
        "model": "double",
    }
    assert access.items() >= {**expected, "peer": "127.0.0.1", "level": "verbose"}.items()
    assert access["duration_ms"] > 0
    (loaded,) = [document for document in documents if "state" in document]
    assert (loaded["model"], loaded["version"], loaded["state"]) == ("double", "1", "READY")
    assert not any("+--" in document["message"] for document in documents)


def test_without_verbosity_there_is_no_line(tmp_path: Path, serve: Callable[..., ServerProcess]) -> None:
    server = serve(tmp_path)
    get(server.http, "/v2")
    assert server.stop() == 0
    assert "GET /v2" not in server.output
