"""Time-outs of connections: idleness, age, and pings from either side."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from support.attack import connect, rest
from support.http2 import ACK, GOAWAY, HEADERS, PING, Connection, call, frame
from support.server import ServerProcess

LIVE = "/inference.GRPCInferenceService/ServerLive"
STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"


@pytest.mark.slow("waits for the time-out end to end")
def test_an_idle_connection_is_closed_after_a_while(models: Path, serve: Callable[..., ServerProcess]) -> None:
    # So long that neither of the two is idle before it has asked.
    server = serve(models, "--idle-timeout-secs=6")
    with connect(server.http) as link, Connection(server.grpc) as connection:
        link.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
        connection.send(call(1, LIVE), frame(0, 1, 1, bytes(5)))
        assert rest(link).startswith(b"HTTP/1.1 200 ")
        assert connection.next(HEADERS).stream == 1
        goaway = connection.goaway()
        assert goaway is not None
        assert goaway.error_code == 0


def test_a_client_whose_connection_was_closed_connects_again(models: Path, serve: Callable[..., ServerProcess]) -> None:
    # Without a time-out for idle connections: a call may be under way on one that is given up as idle.
    aging = serve(models, "--grpc-max-connection-age=300")
    with grpc.insecure_channel(aging.grpc) as channel:
        for _ in range(300):
            assert channel.unary_unary(LIVE)(b"", timeout=60) == b"\x08\x01"
    server = serve(models, "--idle-timeout-secs=0.2")
    connection = http.client.HTTPConnection(server.http, timeout=60)
    answered = 0
    while answered < 100:
        try:
            connection.request("GET", "/v2/health/live")
            answer = connection.getresponse()
        except ConnectionError:  # the machine gave it no time for so long that it was idle: then again, as clients do
            connection.close()
            continue
        assert (answer.status, answer.read()) == (200, b"")
        answered += 1
    connection.close()


def test_an_old_connection_gets_a_goaway_and_is_closed(models: Path, serve: Callable[..., ServerProcess]) -> None:
    server = serve(models, "--grpc-max-connection-age=300", "--grpc-max-connection-age-grace=300")
    with Connection(server.grpc) as connection:
        connection.send(call(1, STREAM))
        assert connection.next(GOAWAY).error_code == 0
        # The stream is still open; the server does not wait for its end.
        for _ in connection.frames():
            pass


@pytest.mark.slow("waits for the time-out end to end")
def test_a_client_that_answers_no_ping_is_disconnected(models: Path, serve: Callable[..., ServerProcess]) -> None:
    # Long enough for a client that answers, whatever else the machine has to do.
    server = serve(models, "--grpc-keepalive-time=200", "--grpc-keepalive-timeout=8000")
    with Connection(server.grpc) as silent:
        silent.send(call(1, STREAM))
        assert silent.next(PING).flags & ACK == 0
        for _ in silent.frames():
            pass
    with Connection(server.grpc) as alive:
        for _ in range(3):
            ping = alive.next(PING)
            alive.send(frame(PING, ACK, payload=ping.payload))


def test_pings_are_accepted_as_often_as_the_flags_say(models: Path, serve: Callable[..., ServerProcess]) -> None:
    server = serve(models, "--grpc-http2-max-ping-strikes=0")
    with Connection(server.grpc) as connection:
        connection.send(*([frame(PING, payload=bytes(8))] * 50), call(1, LIVE), frame(0, 1, 1, bytes(5)))
        assert connection.next(HEADERS).stream == 1


def test_two_servers_share_a_port_where_both_say_so(models: Path, serve: Callable[..., ServerProcess]) -> None:
    first = serve(models, "--reuse-http-port=true")
    port = first.http.rpartition(":")[2]
    second = serve(models, "--reuse-http-port=true", f"--http-port={port}")
    assert second.http == first.http
    first.stop()
    connection = http.client.HTTPConnection(second.http, timeout=30)
    connection.request("GET", "/v2/health/ready")
    assert connection.getresponse().status == 200
    connection.close()
