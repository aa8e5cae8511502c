"""Clients that flood and connect again, from the address of a client that does not."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
from support.flooder import Flooder
from support.http2 import ACK, DATA, END_STREAM, GOAWAY, RST_STREAM, SETTINGS, WINDOW_UPDATE, Connection, call, frame
from support.models import add_model, times
from support.server import ServerProcess
from support.steady_client import SteadyClient, p99_s
from support.waiting import until
from tritonclient.grpc import service_pb2

pytestmark = pytest.mark.alone

INFER: Final = "/inference.GRPCInferenceService/ModelInfer"
# The address that the steady client has too.
LOOPBACK: Final = "127.0.0.1"
CONNECTIONS: Final = 20
# Each of so few has enough turns to be closed; of many, each is read so slowly that it stays within its budget.
FEW: Final = 4
FRAMES_PER_S: Final = 1000
BURST: Final = 5 * FRAMES_PER_S
# Calls of a connection that are read before the server looks at the clock, and those that lie in its buffers.
UNSETTLED: Final = 600
COLUMNS: Final = 1 << 18


@pytest.fixture
def server(tmp_path: Path, serve: Callable[..., ServerProcess]) -> ServerProcess:
    repository = tmp_path / "models"
    add_model(repository, "double")
    # A row is a megabyte.
    add_model(repository, "wide", times(columns=COLUMNS))
    return serve(repository)


@pytest.mark.slow("floods until connections were held and others took their place")
def test_a_flooding_address_has_one_budget_however_often_it_connects(server: ServerProcess) -> None:
    flooder = Flooder(server.grpc, LOOPBACK, FEW)
    with SteadyClient(server.http, server.grpc) as steady_client:
        begun_s = time.monotonic()
        with flooder:
            until(lambda: "is closed for a flood" in server.output)
            steady_client.latencies_s(at_least=1000)
        flooded_s = time.monotonic() - begun_s
        with grpc_client.InferenceServerClient(server.grpc) as newcomer:
            assert newcomer.is_model_ready("double")
    assert server.output.count("is closed for a flood") == 1
    # Connections that were open before have each a budget of their own, which time renews.
    calls = sorted(flooder.calls, reverse=True)
    first, again = calls[:FEW], calls[FEW:]
    assert max(first) < BURST + FRAMES_PER_S * flooded_s + UNSETTLED
    assert sum(again) < FRAMES_PER_S * (flooded_s + 1) + UNSETTLED * len(again)


@pytest.mark.proof
@pytest.mark.slow("measures ten seconds of quiet and of flood, three times")
def test_a_flood_from_its_own_address_slows_a_client_little(server: ServerProcess) -> None:
    ratios = []
    for source in (LOOPBACK, "127.0.2.1", "127.0.2.2"):
        with SteadyClient(server.http, server.grpc) as steady_client:
            steady_client.latencies_s(at_least=200)
            time.sleep(10)
            quiet_s = p99_s(steady_client.latencies_s(at_least=200))
            with Flooder(server.grpc, source, CONNECTIONS):
                time.sleep(10)
                loud_s = p99_s(steady_client.latencies_s(at_least=100))
            ratios.append(loud_s / quiet_s)
    assert np.median(ratios) < 3, ratios


def test_a_client_may_acknowledge_a_large_answer_by_the_kilobyte(server: ServerProcess) -> None:
    message, window = _wide(rows=2), 1 << 14
    with Connection(server.grpc, settings=struct.pack(">HI", 4, window)) as connection:
        connection.next(SETTINGS)
        connection.next(WINDOW_UPDATE)  # until then the server takes 64 KiB
        connection.send(frame(SETTINGS, ACK), frame(WINDOW_UPDATE, payload=struct.pack(">I", 64 << 20)))
        acknowledged = 0
        for stream in range(1, 20, 2):
            connection.send(call(stream, INFER), *_pieces(stream, message))
            for found in connection.frames():
                assert found.kind not in (GOAWAY, RST_STREAM), found
                if found.kind == DATA:
                    updates = [1024] * (len(found.payload) // 1024) + [len(found.payload) % 1024]
                    more = [struct.pack(">I", update) for update in updates if update]
                    connection.send(*(frame(WINDOW_UPDATE, 0, of, one) for one in more for of in (0, stream)))
                    acknowledged += 2 * len(more)
                if found.stream == stream and found.flags & END_STREAM and found.kind != DATA:
                    break
        assert acknowledged > 2 * BURST


def _wide(rows: int) -> bytes:
    """A gRPC message for the model `wide`, prefix included."""
    tensor = service_pb2.ModelInferRequest.InferInputTensor(name="X", datatype="FP32", shape=[rows, COLUMNS])
    request = service_pb2.ModelInferRequest(model_name="wide", inputs=[tensor])
    request.raw_input_contents.append(np.ones((rows, COLUMNS), np.float32).tobytes())
    raw: bytes = request.SerializeToString()
    return struct.pack(">BI", 0, len(raw)) + raw


def _pieces(stream: int, message: bytes) -> list[bytes]:
    pieces = [message[first : first + (1 << 14)] for first in range(0, len(message), 1 << 14)]
    return [frame(DATA, END_STREAM if piece is pieces[-1] else 0, stream, piece) for piece in pieces]
