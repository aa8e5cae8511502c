"""A server of a cluster's node is started again where it ends, and calls find it at its new address."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from alipes.client.moving import MovingClient
from alipes.errors import InvalidArgument, ServeError, TransportError
from alipes.serve.node import NodeServer, host_of
from support.models import add_model


@pytest.fixture
def models(repository: Path) -> str:
    add_model(repository, "double", config="max_batch_size: 8\n")
    return str(repository)


@pytest.mark.slow("starts a server, and again")
def test_calls_go_on_though_the_server_is_killed(models: str) -> None:
    server = NodeServer(models, "127.0.0.1", {})
    try:
        server.wait_until_ready()
        failures: list[ServeError] = []
        server.watch(failures.append)
        client = MovingClient(lambda: f"grpc://{server.grpc}", 60, {})
        first = server.grpc
        answers = []
        for number in range(20):
            if number == 10:
                os.kill(server.pid, signal.SIGKILL)
            answers.append(client.infer("double", [[number, 1.0]])[0, 0])
        assert answers == [2 * number for number in range(20)]
        assert server.grpc != first
        with pytest.raises(InvalidArgument):
            client.infer("double", [[1.0, 2.0, 3.0]])
        client.close()
        assert failures == []
    finally:
        server.stop()
    assert not any(thread.name == "alipes-node-server" and thread.is_alive() for thread in threading.enumerate())


def test_a_server_that_is_nowhere_is_looked_for_in_vain() -> None:
    client = MovingClient(lambda: "grpc://127.0.0.1:1", 0.5, {})
    with pytest.raises(TransportError):
        client.infer("double", [[1.0]])


def test_a_server_listens_on_its_address_alone(models: str) -> None:
    server = NodeServer(models, "127.0.0.1", {})
    try:
        assert server.grpc.startswith("127.0.0.1:")
        assert server._options["host"] == "127.0.0.1"
    finally:
        server.stop()
    named = {"host": "127.0.0.1", "port": 0}
    server = NodeServer(models, "some-name", named)
    try:
        assert server.http.startswith("127.0.0.1:")
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("address", "host"),
    [("tcp://10.0.0.7:40123", "10.0.0.7"), ("tls://[fd00::1]:1", "fd00::1"), ("inproc://10.0.0.7/12/1", "127.0.0.1")],
)
def test_the_host_of_an_address_is_without_port_and_protocol(address: str, host: str) -> None:
    assert host_of(address) == host
