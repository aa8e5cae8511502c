"""A server with short time-outs, and a steady client that must not notice the attackers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import numpy as np
import psutil
import pytest
import tritonclient.http as http_client
from alipes import Client
from support.models import add_model, times
from support.server import ServerProcess
from support.steady_client import NOISE_S, SteadyClient, p99_s
from support.waiting import until

# Growth of a server's memory that is allowed after an attack: buffers of the allocator, not of connections.
MAX_GROWTH_BYTES = 48 << 20

# Long enough for a well-behaved client on a busy machine to finish what it has begun to send.
SHORT_TIMEOUTS = (
    "--header-timeout-secs=4",
    "--stall-timeout-secs=4",
    "--http2-max-control-frames=2000",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    # A row is a megabyte: an answer that no socket's buffer takes in.
    add_model(repository, "wide", times(columns=1 << 18))
    server = serve_module(repository, *SHORT_TIMEOUTS)
    _warm_up(server)
    return server


@pytest.fixture(scope="module")
def companion(server: ServerProcess) -> Iterator[SteadyClient]:
    """Sends requests to the server as long as the tests of a module last."""
    with SteadyClient(server.http, server.grpc) as steady_client:
        yield steady_client


@pytest.fixture(params=["counted", pytest.param("timed", marks=pytest.mark.proof)])
def steady_client(request: pytest.FixtureRequest, server: ServerProcess) -> Iterator[None]:
    """Asserts that a test leaves neither connections nor memory behind, and that others are answered after it.

    In the proof it asserts besides that the test slows a client down little that asks all the time.
    """
    timed = request.param == "timed"
    with _slowed_little(request.getfixturevalue("companion")) if timed else nullcontext(), _nothing_left(server):
        yield
        for address in (server.http, f"grpc://{server.grpc}"):
            with Client(address) as client:
                assert client.infer("double", {"X": [[1, 2]]})["Y"].tolist() == [[2, 4]]


@contextmanager
def _nothing_left(server: ServerProcess) -> Iterator[None]:
    process = psutil.Process(server.process.pid)
    connections, memory = len(process.net_connections()), process.memory_info().rss
    yield
    until(lambda: len(process.net_connections()) <= connections + 2, "connections are left")
    until(lambda: process.memory_info().rss < memory + MAX_GROWTH_BYTES, "memory is left")


@contextmanager
def _slowed_little(companion: SteadyClient) -> Iterator[None]:
    companion.latencies_s(at_least=0)
    quiet_s = p99_s(companion.latencies_s(at_least=200))
    yield
    loud_s = p99_s(companion.latencies_s(at_least=100))
    companion.latencies_s(at_least=50)
    assert loud_s < max(3 * quiet_s, NOISE_S), f"{loud_s} s, {quiet_s} s when it was quiet"


def _warm_up(server: ServerProcess) -> None:
    """Makes the server allocate the memory that its models need when several clients send requests at once."""
    tensor = http_client.InferInput("X", [4, 1 << 18], "FP32")
    tensor.set_data_from_numpy(np.ones((4, 1 << 18), np.float32))
    with http_client.InferenceServerClient(server.http, concurrency=8, network_timeout=60.0) as client:
        for _ in range(3):
            for pending in [client.async_infer("wide", [tensor]) for _ in range(8)]:
                pending.get_result()
