"""More connections than there are places."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import psutil
import pytest
from support.attack import connect, links, rest
from support.models import add_model
from support.server import ServerProcess
from support.waiting import until

PLACES = 20
METRICS_PLACES = 128


@pytest.fixture
def server(tmp_path: Path, serve: Callable[..., ServerProcess]) -> ServerProcess:
    repository = tmp_path / "models"
    add_model(repository, "double")
    return serve(repository, f"--max-connections={PLACES}")


@pytest.fixture
def idlers(server: ServerProcess) -> Iterator[None]:
    """As many connections as there are places, each of which was answered."""
    with links(server.http, PLACES) as opened:
        for link in opened:
            link.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
            assert link.recv(4096).startswith(b"HTTP/1.1 200")
        yield


def status(server: ServerProcess) -> int:
    connection = http.client.HTTPConnection(server.http, timeout=30)
    try:
        connection.request("GET", "/v2/health/live")
        return connection.getresponse().status
    finally:
        connection.close()


def serves(server: ServerProcess) -> bool:
    """Whether it has a place for one more; while there are very many, it closes connections without a word."""
    try:
        return status(server) == 200
    except ConnectionError:
        return False


@pytest.mark.usefixtures("idlers")
def test_one_connection_too_many_is_answered_retry_after(server: ServerProcess) -> None:
    with connect(server.http) as link:
        # At once: the server may close a refused connection before the rest is sent.
        link.sendall(
            b"POST /v2/models/double/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\n\r\n" + b"x" * 10_000
        )
        answer = rest(link)
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nretry-after: 1\r\n" in answer
    assert f"the server has {PLACES} connections".encode() in answer
    server.wait_for_output(f"connections are refused: {PLACES} are open, see --max-connections")


@pytest.mark.usefixtures("idlers")
def test_a_grpc_client_of_a_full_server_gets_unavailable(server: ServerProcess) -> None:
    with grpc.insecure_channel(server.grpc) as channel, pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/inference.GRPCInferenceService/ServerLive")(b"", timeout=30)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.usefixtures("idlers")
def test_a_full_server_still_serves_metrics(server: ServerProcess) -> None:
    connection = http.client.HTTPConnection(server.metrics, timeout=30)
    connection.request("GET", "/metrics")
    assert connection.getresponse().status == 200
    connection.close()


def test_idle_readers_of_metrics_make_room_for_whoever_asks_now(server: ServerProcess) -> None:
    question = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    with links(server.metrics, METRICS_PLACES, b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n") as opened:
        for link in opened:
            assert link.recv(4096).startswith(b"HTTP/1.1 200")
        with links(server.metrics, 3, question) as late:
            for link, oldest in zip(late, opened, strict=False):
                assert link.recv(4096).startswith(b"HTTP/1.1 200")
                # It has given way.
                assert rest(oldest) == b""
        for link in opened[3:]:
            link.sendall(question)
            assert link.recv(4096).startswith(b"HTTP/1.1 200")


def test_readers_of_metrics_who_never_ask_make_room_too(server: ServerProcess) -> None:
    with links(server.metrics, 2 * METRICS_PLACES), connect(server.metrics) as late:
        late.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        assert late.recv(4096).startswith(b"HTTP/1.1 200")


def test_a_closed_connection_makes_room_for_the_next(server: ServerProcess) -> None:
    with links(server.http, PLACES) as opened:
        for link in opened:
            link.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
            assert link.recv(4096).startswith(b"HTTP/1.1 200")
        assert status(server) == 503
        opened.pop().close()
        until(lambda: status(server) == 200, "the place is not free again")


def test_a_flood_of_connections_leaves_no_trace(server: ServerProcess) -> None:
    for _ in range(20):
        with links(server.http, 100):
            pass
    until(lambda: serves(server), "the server does not recover")


def test_refusals_reach_clients_that_have_sent_a_request(server: ServerProcess) -> None:
    with links(server.http, PLACES) as opened:
        for link in opened:
            link.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
            assert link.recv(4096).startswith(b"HTTP/1.1 200")
        for _ in range(50):
            with connect(server.http) as link:
                link.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
                assert rest(link).startswith(b"HTTP/1.1 503 ")


def test_without_descriptors_clients_are_answered_at_once(tmp_path: Path, serve: Callable[..., ServerProcess]) -> None:
    add_model(tmp_path / "models", "double")
    server = serve(tmp_path / "models")
    process = psutil.Process(server.process.pid)
    before = process.rlimit(psutil.RLIMIT_NOFILE)
    # Five further connections: what the server itself opens meanwhile is no part of it.
    process.rlimit(psutil.RLIMIT_NOFILE, (process.num_fds() + 5, before[1]))
    with links(server.http, 40, b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n") as opened:
        answers = [link.recv(1 << 16) for link in opened]
    assert {answer[:12] for answer in answers} == {b"HTTP/1.1 200", b"HTTP/1.1 503"}
    assert all(b"no file descriptor left" in answer for answer in answers if b" 503 " in answer)
    server.wait_for_output("connections are refused: the process has no descriptor left")
    until(lambda: serves(server), "a client is still refused")
    process.rlimit(psutil.RLIMIT_NOFILE, before)
