"""Headers and metadata that models see as parameters."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from support.server import ServerDidNotStart, ServerProcess
from support.text_models import add_model
from support.waiting import TIMEOUT_S
from tritonclient.grpc import service_pb2, service_pb2_grpc

SHOWS = """
class TritonPythonModel:
    def execute(self, requests):
        return [good(json.dumps(json.loads(request.parameters()), sort_keys=True)) for request in requests]
"""

BODY = {"inputs": [{"name": "HOW", "shape": [1], "datatype": "BYTES", "data": ["x"]}]}


@pytest.fixture
def server(repository: Path, serve: Callable[..., ServerProcess]) -> ServerProcess:
    add_model(repository, "shows", SHOWS)
    return serve(repository, "--http-header-forward-pattern=^x-|color", "--grpc-header-forward-pattern=^x-")


def post(connection: http.client.HTTPConnection, headers: dict[str, str]) -> tuple[int, str]:
    connection.request("POST", "/v2/models/shows/infer", json.dumps(BODY), headers)
    answer = connection.getresponse()
    document = json.loads(answer.read())
    return answer.status, document["outputs"][0]["data"][0] if answer.status == 200 else document["error"]


def test_a_model_sees_headers_under_the_names_that_the_client_spelled(server: ServerProcess) -> None:
    connection = http.client.HTTPConnection(server.http, timeout=TIMEOUT_S)
    for headers in ({"X-Team": "a", "BackColor": "b", "Other": "c"}, {"x-TEAM": "d"}, {}):
        status, text = post(connection, headers)
        seen = {name: value for name, value in headers.items() if name != "Other"}
        assert (status, json.loads(text)) == (200, seen)
    connection.close()


def test_headers_of_pipelined_requests_do_not_mix(server: ServerProcess) -> None:
    body = json.dumps(BODY)
    begin = f"POST /v2/models/shows/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    heads = [f"{begin}{header}\r\n\r\n{body}" for header in ("X-One: 1", "x-TWO: 2")]
    connection = http.client.HTTPConnection(server.http, timeout=TIMEOUT_S)
    connection.connect()
    connection.sock.sendall("".join(heads).encode())
    seen = []
    with connection.sock.makefile("rb") as stream:
        for _ in heads:
            head = iter(stream.readline, b"\r\n")
            lengths = [line for line in head if line.lower().startswith(b"content-length:")]
            answer = json.loads(stream.read(int(lengths[0].split(b":")[1])))
            seen.append(json.loads(answer["outputs"][0]["data"][0]))
    connection.close()
    assert seen == [{"X-One": "1"}, {"x-TWO": "2"}]


def test_a_name_of_the_protocol_is_refused(repository: Path, serve: Callable[..., ServerProcess]) -> None:
    add_model(repository, "shows", SHOWS)
    server = serve(repository, "--http-header-forward-pattern=.*")
    connection = http.client.HTTPConnection(server.http, timeout=TIMEOUT_S)
    status, text = post(connection, {"Triton_Key": "v"})
    assert (status, text) == (400, "Header 'Triton_Key' is reserved for Triton usage and cannot be forwarded.")
    connection.close()


@pytest.mark.parametrize("streamed", [False, True])
def test_a_model_sees_metadata(server: ServerProcess, streamed: bool) -> None:
    request = service_pb2.ModelInferRequest(model_name="shows")
    tensor = request.inputs.add(name="HOW", datatype="BYTES", shape=[1])
    tensor.contents.bytes_contents.append(b"x")
    metadata = (("x-team", "golden"), ("other", "no"))
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        if streamed:
            calls = stub.ModelStreamInfer(iter([request, request]), metadata=metadata, timeout=TIMEOUT_S)
            answers = [reply.infer_response for reply in calls]
        else:
            answers = [stub.ModelInfer(request, metadata=metadata, timeout=TIMEOUT_S)]
    assert len(answers) == 1 + streamed
    for answer in answers:
        assert json.loads(answer.raw_output_contents[0][4:]) == {"x-team": "golden"}


def test_an_invalid_pattern_is_refused_at_the_start(repository: Path, serve: Callable[..., ServerProcess]) -> None:
    with pytest.raises(ServerDidNotStart) as failed:
        serve(repository, "--http-header-forward-pattern=(")
    assert failed.value.exit_code == 1
    assert "header forward pattern '(' is no regular expression" in failed.value.output
    assert "Traceback" not in failed.value.output
