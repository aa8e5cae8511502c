"""Knative's own queue-proxy in front of our server, as two containers of a pod: probes, limits, protocols, the end."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes import Client
from alipes.errors import AlipesError
from support.exposition import samples
from support.kube import Missing
from support.models import add_model, times
from support.network import own_network
from support.ports import free_ports
from support.queue_proxy import QueueProxy
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

pytestmark = [pytest.mark.proof, pytest.mark.timeout(300)]

Serve = Callable[..., ServerProcess]
APP = """
import asyncio
from collections.abc import Iterator
import alipes

@alipes.model
async def patient(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"
"""
DONE = (200, b'"done"')
LIMIT = 3


class Pod:
    """The containers of a pod, which share a network."""

    def __init__(self, folder: Path, serve: Serve, stack: ExitStack) -> None:
        self.http_port, self.grpc_port = free_ports(2)
        self._folder = folder
        self._serve = serve
        self._stack = stack
        (folder / "models").mkdir()
        add_model(folder / "models", "times", times(2, "columns"))
        (folder / "app.py").write_text(APP, encoding="utf-8")

    def start_server(self) -> ServerProcess:
        ports = (f"--http-port={self.http_port}", f"--grpc-port={self.grpc_port}")
        return self._serve(self._folder / "app.py", str(self._folder / "models"), *ports)

    def queue(self, *, concurrency: int = 0, grpc: bool = False) -> QueueProxy:
        """The queue-proxy in front of one of the server's two ports, as a pod of Knative has one."""
        ready = {"path": "/v2/health/ready", "port": self.http_port, "host": "127.0.0.1", "scheme": "HTTP"}
        probe: dict[str, Any] = {"grpc": {"port": self.grpc_port}} if grpc else {"httpGet": ready}
        port = self.grpc_port if grpc else self.http_port
        return self._stack.enter_context(QueueProxy(self._folder / "queue.log", port, probe, concurrency))


@pytest.fixture
def pod(tmp_path: Path, serve: Serve) -> Iterator[Pod]:
    with ExitStack() as stack:
        try:
            stack.enter_context(own_network("10.9.8.7/32"))
            found = Pod(tmp_path, serve, stack)
            found.queue().__exit__()
        except (Missing, PermissionError) as reason:
            pytest.skip(str(reason))
        yield found


def ask(address: str, seconds: float) -> tuple[int, bytes]:
    """The status and the body of an answer, on a connection of its own."""
    host, port = address.rsplit(":", 1)
    with closing(HTTPConnection(host, int(port), timeout=TIMEOUT_S)) as connection:
        connection.request("POST", "/patient", json.dumps({"seconds": seconds}), {"content-type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read()


class Requests:
    """Requests that begin at the same time; their answers are there once the block ends."""

    def __init__(self, address: str, count: int, seconds: float, rounds: int = 1) -> None:
        self.answers: list[tuple[int, bytes]] = []

        def call() -> None:
            for _ in range(rounds):
                self.answers.append(ask(address, seconds))

        self._threads = [threading.Thread(target=call) for _ in range(count)]

    def __enter__(self) -> Requests:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self._threads:
            thread.join()

    @property
    def are_over(self) -> bool:
        return not any(thread.is_alive() for thread in self._threads)


def in_flight(server: ServerProcess) -> float:
    """Requests in the server."""
    return sum(value for name, value in samples(server).items() if name.startswith("alipes_inference_concurrency{"))


def test_a_pod_is_ready_once_our_server_is(pod: Pod) -> None:
    queue = pod.queue()
    assert queue.is_ready() is False
    server = pod.start_server()
    assert queue.is_ready() is True
    assert ask(queue.address, 0) == DONE
    assert server.stop() == 0
    assert queue.is_ready() is False


def test_no_more_requests_are_in_the_server_than_it_is_to_have(pod: Pod) -> None:
    server = pod.start_server()
    queue = pod.queue(concurrency=LIMIT)
    counts: set[float] = set()
    with Requests(queue.address, 12, 0.1, rounds=10) as load:
        while not load.are_over:
            counts.add(in_flight(server))
    assert max(counts) == LIMIT
    assert load.answers == [DONE] * 120


def test_both_protocols_and_large_bodies_pass_unchanged(pod: Pod) -> None:
    pod.start_server()
    rows = np.random.default_rng(3).standard_normal((4, 500_000)).astype(np.float32)
    for grpc in (False, True):
        queue = pod.queue(grpc=grpc)
        until(queue.is_ready, "the server is ready")
        scheme = "grpc" if grpc else "http"
        with Client(f"{scheme}://{queue.address}") as client:
            assert client.infer("times", {"X": rows})["Y"].tobytes() == (2 * rows).tobytes()
            assert client.is_ready("patient")
            with pytest.raises(AlipesError, match="'other'"):
                client.infer("other", {"X": rows[:, :2]})
        queue.__exit__()


def test_a_pod_that_ends_answers_what_came_before(pod: Pod) -> None:
    server = pod.start_server()
    queue = pod.queue(concurrency=LIMIT)
    # Longer than the queue-proxy waits for the last request: our drain has them at the end.
    with Requests(queue.address, LIMIT - 1, 42) as lasting:
        until(lambda: in_flight(server) == LIMIT - 1, "the requests are in the server")
        queue.begin_drain()
        until(lambda: queue.is_ready() is False, "the pod gets no more requests")
        # Those that come because other machines do not know yet.
        assert ask(queue.address, 0) == DONE
        assert queue.await_drain() == 200
        assert not lasting.are_over
        server.signal(signal.SIGTERM)
    assert lasting.answers == [DONE] * (LIMIT - 1)
    assert server.wait() == 0
    assert queue.wait() == 0


def test_a_server_that_ends_first_answers_what_it_has(pod: Pod) -> None:
    server = pod.start_server()
    queue = pod.queue()
    with Requests(queue.address, 5, 3) as lasting:
        until(lambda: in_flight(server) == 5, "the requests are in the server")
        server.signal(signal.SIGTERM)
    assert lasting.answers == [DONE] * 5
    assert server.wait() == 0
    assert queue.is_ready() is False
