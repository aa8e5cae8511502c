"""Ten thousand requests that are withdrawn while they wait for a busy model leave nothing behind."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable
from pathlib import Path

import grpc
import numpy as np
import psutil
import pytest
from support.models import add_model
from support.notes import Notes
from support.processes import metric
from support.python_models import add_python_model
from support.server import ServerProcess
from support.steady_client import NOISE_S, SteadyClient, p99_s
from support.waiting import TIMEOUT_S, until
from tritonclient.grpc import service_pb2, service_pb2_grpc

Start = Callable[..., ServerProcess]

WITHDRAWN = 10_000

# A worker may hold as many requests before they are its turn; those do not count as waiting.
AHEAD = 50
ELEMENTS = 1000

# What the allocator may keep of a thousand requests at a time, in bytes.
MAX_GROWTH_BYTES = 32 << 20

HOLDS = """
class TritonPythonModel:
    def execute(self, requests):
        note("begun")
        await_note("release")
        return [answer(Y=given(request)[:1]) for request in requests]
"""


@pytest.fixture
def server(repository: Path, start: Start) -> ServerProcess:
    add_python_model(repository, "holds", HOLDS)
    add_model(repository, "double")
    return start()


def inference() -> service_pb2.ModelInferRequest:
    request = service_pb2.ModelInferRequest(model_name="holds", raw_input_contents=[bytes(4 * ELEMENTS)])
    request.inputs.add(name="X", datatype="INT32", shape=[ELEMENTS])
    return request


def waiting(server: ServerProcess) -> float:
    return metric(server, "nv_inference_pending_request_count", model="holds")


def withdraw_over_grpc(server: ServerProcess, count: int) -> None:
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        calls = [stub.ModelInfer.future(inference(), timeout=TIMEOUT_S) for _ in range(count)]
        until(lambda: waiting(server) >= count - AHEAD)
        for call in calls:
            call.cancel()


def withdraw_over_http(server: ServerProcess, count: int) -> None:
    host, port = server.http.rsplit(":", 1)
    tensor = {"name": "X", "datatype": "INT32", "shape": [ELEMENTS], "data": np.zeros(ELEMENTS, int).tolist()}
    body = json.dumps({"inputs": [tensor]})
    wire = f"POST /v2/models/holds/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            link = stack.enter_context(socket.create_connection((host, int(port)), timeout=TIMEOUT_S))
            link.sendall(wire)
        until(lambda: waiting(server) >= count - AHEAD)


@pytest.mark.parametrize(("withdraw", "at_a_time"), [(withdraw_over_grpc, 1000), (withdraw_over_http, 250)])
def test_withdrawn_requests_leave_the_queue_and_their_memory(
    server: ServerProcess, notes: Notes, withdraw: Callable[[ServerProcess, int], None], at_a_time: int
) -> None:
    process = psutil.Process(server.process.pid)
    with grpc.insecure_channel(server.grpc) as channel, SteadyClient(server.http, server.grpc) as steady_client:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        running = stub.ModelInfer.future(inference())  # for as long as the test takes
        notes.read("begun")
        still = waiting(server)
        withdraw(server, at_a_time)
        until(lambda: waiting(server) <= still, "withdrawn requests still wait")
        memory = process.memory_info().rss
        steady_client.latencies_s(at_least=0)
        quiet_s = p99_s(steady_client.latencies_s(at_least=500))
        for _ in range(WITHDRAWN // at_a_time):
            withdraw(server, at_a_time)
            until(lambda: waiting(server) <= still, "withdrawn requests still wait")
        loud_s = p99_s(steady_client.latencies_s(at_least=100))
        until(lambda: process.memory_info().rss < memory + MAX_GROWTH_BYTES, "memory is left")
        notes.write("release")
        assert running.result().outputs[0].name == "Y"
        assert stub.ModelInfer(inference(), timeout=TIMEOUT_S).outputs[0].name == "Y"
    assert loud_s < max(3 * quiet_s, NOISE_S), f"{loud_s} s, {quiet_s} s when it was quiet"
