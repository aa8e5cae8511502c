"""Clients of HTTP/2 that flood, withdraw, withhold or never read, on both endpoints."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import count
from typing import Final

import grpc
import pytest
from support.attack import connect, rest
from support.http2 import (
    ACK,
    CONTINUATION,
    DATA,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    HEADERS,
    PING,
    PREFACE,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Connection,
    Frame,
    call,
    frame,
    header_block,
    request,
    reset,
)
from support.server import ServerProcess
from tritonclient.grpc import service_pb2

pytestmark = [
    pytest.mark.alone,
    pytest.mark.slow("waits for time-outs of connections, end to end"),
    pytest.mark.usefixtures("steady_client"),
]

INFER = "/inference.GRPCInferenceService/ModelInfer"
STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"
# A type of frames that nobody knows.
UNKNOWN = 0xF3
# `:status: 431`, as HTTP/2 compresses it.
STATUS_431 = b"\x48\x83\x69\x90\xff"
# Each flood comes from an address of its own: one that has flooded has a small budget for a while.
SOURCES: Final = (f"127.0.1.{number}" for number in count(1))
LIVE = "/inference.GRPCInferenceService/ServerLive"


@pytest.fixture(params=["http", "grpc"])
def address(request: pytest.FixtureRequest, server: ServerProcess) -> str:
    return str(getattr(server, request.param))


def flood(address: str, pieces: Iterator[bytes]) -> int | None:
    """Sends until the server closes; why it says that it does."""
    with Connection(address, source=next(SOURCES)) as connection:
        try:
            for piece in pieces:
                connection.send(piece)
        except OSError:
            pass
        goaway = connection.goaway()
        return goaway.error_code if goaway else None


def opened_and_reset(address_of_call: bytes, stream: int) -> bytes:
    return frame(HEADERS, 4, stream, address_of_call) + reset(stream)


def rapid_resets(count: int) -> Iterator[bytes]:
    block = header_block(
        {":method": "POST", ":scheme": "http", ":path": INFER, ":authority": "x", "content-type": "application/grpc"}
    )
    streams = iter(range(1, 2 * count, 2))
    while batch := [opened_and_reset(block, stream) for stream, _ in zip(streams, range(100), strict=False)]:
        yield b"".join(batch)


def test_calls_that_are_opened_and_reset_without_end_end_the_connection(address: str) -> None:
    assert flood(address, rapid_resets(60_000)) in (ENHANCE_YOUR_CALM, None)


def test_five_thousand_withdrawn_calls_are_nothing_special(server: ServerProcess) -> None:
    with Connection(server.grpc, source=next(SOURCES)) as connection:
        for batch in rapid_resets(5000):
            connection.send(batch)
        connection.send(call(20_001, LIVE), frame(DATA, END_STREAM, 20_001, bytes(5)))
        assert any(found.kind == HEADERS and found.stream == 20_001 for found in connection.frames())


@pytest.mark.parametrize(
    "piece",
    [
        frame(SETTINGS),
        frame(PRIORITY, stream=1, payload=bytes(5)),
        frame(PING, payload=bytes(8)),
        frame(PING, ACK, payload=bytes(8)),
        frame(WINDOW_UPDATE, payload=b"\0\0\0\1"),
        frame(UNKNOWN, stream=1, payload=b"anything"),
    ],
    ids=["settings", "priorities", "pings", "answers to pings", "windows", "unknown"],
)
def test_frames_that_carry_nothing_are_counted(address: str, piece: bytes) -> None:
    assert flood(address, (piece * 1000 for _ in range(100))) in (ENHANCE_YOUR_CALM, None)


@pytest.mark.parametrize("payload", [b"", b"x"], ids=["empty", "a byte"])
def test_data_that_comes_in_crumbs_is_counted(server: ServerProcess, payload: bytes) -> None:
    # A message of a megabyte, of which some comes.
    begin = call(1, STREAM) + frame(DATA, stream=1, payload=struct.pack(">BI", 0, 1 << 20))
    pieces = (begin if number == 0 else frame(DATA, stream=1, payload=payload) * 1000 for number in range(100))
    assert flood(server.grpc, pieces) in (ENHANCE_YOUR_CALM, None)


def test_separate_prefixes_of_messages_are_no_flood(server: ServerProcess) -> None:
    message = service_pb2.ModelInferRequest(model_name="absent", id="7").SerializeToString()
    assert len(message) >= 8
    one = frame(DATA, stream=1, payload=struct.pack(">BI", 0, len(message))) + frame(
        DATA, stream=1, payload=message * 2
    )
    with Connection(server.http) as connection:
        connection.next(SETTINGS)
        connection.send(
            frame(SETTINGS, ACK), request(1, "POST", "/v2/models/double/infer", end=False), *([one] * 50_000)
        )
        connection.send(frame(DATA, END_STREAM, 1), request(3, "GET", "/v2/health/live"))
        while connection.next(HEADERS).stream != 3:
            pass


def test_a_client_of_http_may_ping(server: ServerProcess) -> None:
    with Connection(server.http) as connection:
        connection.send(*([frame(PING, payload=bytes(8))] * 10), request(1, "GET", "/v2/health/live"))
        assert connection.next(HEADERS).stream == 1


def test_a_head_without_an_end_ends_the_connection(address: str) -> None:
    def pieces() -> Iterator[bytes]:
        yield frame(HEADERS, 0, 1, header_block({":method": "GET"}))
        for _ in range(10_000):
            yield frame(CONTINUATION, 0, 1, header_block({"x": "y" * 1000}))

    assert flood(address, pieces()) != 0


def test_too_many_headers_are_refused(server: ServerProcess) -> None:
    headers = {f"x-{number}": "y" for number in range(200)}
    with Connection(server.grpc) as connection:
        connection.send(call(1, LIVE, headers, end=True), call(3, LIVE), frame(DATA, END_STREAM, 3, bytes(5)))
        heads: dict[int, Frame] = {}
        while {1, 3} - heads.keys():
            found = connection.next(HEADERS)
            heads.setdefault(found.stream, found)
        assert heads[1].payload.startswith(STATUS_431)
    with Connection(server.http) as connection:
        connection.send(request(1, "GET", "/v2", headers))
        assert connection.next(HEADERS).payload.startswith(STATUS_431)


NO_WINDOW = struct.pack(">HI", 4, 0)


def window(stream: int, more: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", more))


def asks(endpoint: str, stream: int) -> bytes:
    """A request whose answer has a few bytes."""
    if endpoint == "http":
        return request(stream, "GET", "/v2/models/double")
    return call(stream, LIVE) + frame(DATA, END_STREAM, stream, bytes(5))


@pytest.mark.parametrize("endpoint", ["http", "grpc"])
def test_answers_for_which_a_client_gives_no_room_are_thrown_away(server: ServerProcess, endpoint: str) -> None:
    streams = set(range(1, 41, 2))
    with Connection(getattr(server, endpoint), settings=NO_WINDOW) as connection:
        connection.send(*(asks(endpoint, stream) for stream in sorted(streams)))
        while streams:
            found = next(connection.frames())
            assert found.kind != DATA, "it was not allowed to send a byte"
            if found.kind == RST_STREAM:
                streams.remove(found.stream)
        # The connection goes on.
        connection.send(asks(endpoint, 41), window(41, 1 << 16))
        assert connection.next(DATA).stream == 41


def test_noise_ends_its_own_connection_only(address: str) -> None:
    for wire in (
        PREFACE + frame(DATA, stream=1, payload=b"x" * 100),
        PREFACE + frame(SETTINGS) + frame(DATA, stream=2, payload=b"x"),
        PREFACE + frame(SETTINGS) + frame(HEADERS, 5, 1, b"\xff" * 50),
        PREFACE + frame(SETTINGS) + frame(HEADERS, 5, 0, header_block({":method": "GET"})),
        PREFACE + frame(SETTINGS) + frame(8, 0, 0, bytes(4)),
        PREFACE + frame(SETTINGS) + b"\xff\xff\xff\0\0\0\0\0\1",
        PREFACE + frame(SETTINGS) + frame(SETTINGS, payload=b"\0\4\xff\xff\xff\xff"),
    ):
        with connect(address) as link:
            link.sendall(wire)
            rest(link)


def test_ten_thousand_calls_that_a_real_client_cancels_are_nothing_special(server: ServerProcess) -> None:
    with grpc.insecure_channel(server.grpc) as channel:
        live = channel.unary_unary(LIVE)
        for _ in range(100):
            calls = [live.future(b"", timeout=60) for _ in range(100)]
            for cancelled in calls:
                cancelled.cancel()
        assert live(b"", timeout=60) == b"\x08\x01"
