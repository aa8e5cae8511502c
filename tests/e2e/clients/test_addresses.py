"""An address without a scheme: the client finds out whether gRPC or HTTP is spoken there."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.client import AsyncClient, Client, Retry
from alipes.client.endpoint import Endpoint
from alipes.client.wrong_port import find_endpoint
from alipes.errors import ConfigError, TransportError, Unsupported
from support.models import add_model, times
from support.ports import unused_address
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]
X = np.ones((1, 2), np.float32)

FIRST_CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("infer", ("double", X)),
    ("ask", ("double", X)),
    ("is_live", ()),
    ("is_ready", ()),
    ("is_ready", ("double",)),
    ("server_metadata", ()),
    ("metadata", ("double",)),
    ("config", ("double",)),
    ("signature", ("double",)),
    ("statistics", ("double",)),
    ("models", ()),
    ("unload", ("other",)),
    ("load", ("other",)),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double", times(2.0))
    add_model(repository, "other", times(3.0))
    flags = ("--model-control-mode=explicit", "--load-model=*", "--allow-client-shm=true")
    return serve_module(repository, *flags)


@pytest.mark.parametrize(("method", "arguments"), FIRST_CALLS)
def test_any_first_call_works_at_a_port_of_http(
    server: ServerProcess, method: str, arguments: tuple[Any, ...], caplog: pytest.LogCaptureFixture
) -> None:
    client = Client(server.http)
    expected = getattr(Client(f"http://{server.http}"), method)(*arguments)
    np.testing.assert_equal(repr(getattr(client, method)(*arguments)), repr(expected))
    assert repr(client) == f"Client('http://{server.http}')"
    assert client.infer("double", X).tolist() == [[2, 2]]
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_memory_is_shared_at_a_port_of_http(server: ServerProcess) -> None:
    client = Client(server.http)
    with client.share(1 << 12) as region:
        x = region.empty((1, 2))
        x[:] = 4
        assert client.infer("double", x).tolist() == [[8, 8]]


def test_awaited_calls_find_out_together(server: ServerProcess) -> None:
    async def ask() -> list[float]:
        async with AsyncClient(server.http) as client:
            answers = await asyncio.gather(*(client.infer("double", X * value) for value in range(20)))
            assert client.endpoint.wire == "http"
            return [float(answer[0, 0]) for answer in answers]

    assert asyncio.run(ask()) == [2.0 * value for value in range(20)]


def test_threads_find_out_together(server: ServerProcess) -> None:
    client, answers = Client(server.http), {}

    def ask(value: int) -> None:
        answers[value] = float(client.infer("double", X * value)[0, 0])

    threads = [threading.Thread(target=ask, args=(value,)) for value in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {value: 2.0 * value for value in range(8)}


def test_a_stream_at_a_port_of_http_says_that_it_needs_grpc(server: ServerProcess) -> None:
    with pytest.raises(Unsupported, match=r"stream\(\) needs gRPC, and this client asks http://"):
        next(Client(server.http).stream("double", X))


def test_an_address_of_grpc_is_used_without_a_look(server: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    from alipes.client import wrong_port

    def look(_: str) -> None:
        raise AssertionError("nobody looks")

    monkeypatch.setattr(wrong_port, "spoken_at", look)
    assert Client(server.grpc).infer("double", X).tolist() == [[2, 2]]
    assert not Client(unused_address(), retry=Retry(times=0)).is_live()


def test_a_server_that_has_answered_is_not_looked_at_again(server: ServerProcess) -> None:
    client = Client(server.grpc)
    client.metadata("double")
    assert client._operations.metadata("double", "").over_http is None


@pytest.mark.parametrize("wire", ["http", "grpc"])
def test_a_unix_socket_needs_no_scheme(tmp_path: Path, repository: Path, serve: Serve, wire: str) -> None:
    add_model(repository, "double", times(2.0))
    place = f"unix:{tmp_path / 'socket'}"
    serve(repository, f"--{wire}-address={place}")
    assert find_endpoint(place) == Endpoint("http" if wire == "http" else "grpc", place)
    client = Client(place)
    assert client.infer("double", X).tolist() == [[2, 2]]
    assert client.endpoint.wire == wire


def test_an_endpoint_is_found_by_what_is_spoken_there(server: ServerProcess) -> None:
    assert find_endpoint(server.http) == Endpoint("http", server.http)
    assert find_endpoint(server.grpc) == Endpoint("grpc", server.grpc)
    assert find_endpoint(f"grpc://{server.http}") == Endpoint("grpc", server.http)
    with pytest.raises(
        TransportError, match=r"is no inference server, but .* its metrics; pass the address of its gRPC"
    ):
        find_endpoint(server.metrics)
    nobody = unused_address()
    with pytest.raises(TransportError, match=f"no inference server answers at {nobody}"):
        find_endpoint(nobody)
    with pytest.raises(ConfigError, match="address: expected text"):
        find_endpoint(8000)  # type: ignore[arg-type]
