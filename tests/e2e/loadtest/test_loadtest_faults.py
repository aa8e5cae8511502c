"""Loads of every kind whose model is unloaded, whose server stands still or dies: they go on."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest
from alipes import Client
from alipes._core import LoadTestEngine
from alipes.loadtest import Closed, Measuring, ModelRequests, Open, Sequences, SharedMemoryRequests
from alipes.loadtest.measure import prepare, running
from support.models import add_model, times
from support.python_models import add_python_model
from support.regions import ALLOWED, mapped_regions
from support.server import ServerProcess
from support.waiting import until

pytestmark = pytest.mark.slow("each test waits for several loads to fail and to go on")

Serve = Callable[..., ServerProcess]

SHM = Path("/dev/shm")
SEQUENCE = """
sequence_batching { direct { } control_input [
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] }
] }
"""
WAYS = ("http", "grpc", "stream", "sequence", "shared memory")
PACES = (Closed(2), Open.at(300, seed=1))


def add_models(repository: Path) -> None:
    add_model(repository, "double", times(columns=3))
    config = f"max_batch_size: 4\n{SEQUENCE}"
    add_python_model(repository, "counted", signature="X: INT32[1] -> Y: INT32[1]", config=config)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    repository: Path = tmp_path_factory.mktemp("models")
    add_models(repository)
    return serve_module(repository, ALLOWED, "--model-control-mode=explicit", "--load-model=*")


@contextmanager
def loaded(server: ServerProcess, way: str, pace: Closed | Open, timeout_s: float | None = 60) -> Iterator[Load]:
    """A load of one kind that is answered."""
    wire = "http" if way in ("http", "sequence") else "grpc"
    address = f"{wire}://{getattr(server, wire)}"
    with ExitStack() as stack:
        of_model = ModelRequests("double", stream=way == "stream")
        requests: ModelRequests | Sequences | SharedMemoryRequests = of_model
        if way == "sequence":
            requests = Sequences(ModelRequests("counted"), 5, 1024)
        if way == "shared memory":
            requests = stack.enter_context(SharedMemoryRequests(of_model, address, output_bytes=64))
        engine = stack.enter_context(running(prepare(requests, address), pace, Measuring(timeout_s=timeout_s)))
        load = Load(engine)
        until(lambda: load.answered() > 0, "the first answers")
        yield load


class Load:
    """A load that runs."""

    def __init__(self, engine: LoadTestEngine) -> None:
        self._engine = engine

    def answered(self) -> int:
        """Answers since the last look."""
        return self._engine.cut().answers

    def failed(self, text: str) -> bool:
        """Whether a request failed so since the last look."""
        return any(text in failure for failure in self._engine.cut().failures)


@pytest.mark.parametrize("pace", PACES, ids=["closed", "open"])
@pytest.mark.parametrize("way", WAYS)
def test_an_unloaded_model_fails_until_it_is_back(server: ServerProcess, way: str, pace: Closed | Open) -> None:
    model = "counted" if way == "sequence" else "double"
    with Client(server.http) as client, loaded(server, way, pace) as load:
        client.unload(model)
        try:
            until(lambda: load.failed(f"'{model}'"), "a failure that names the model")
        finally:
            client.load(model)
        until(lambda: load.answered() > 0, "answers of the model that is back")


@pytest.mark.parametrize("pace", PACES, ids=["closed", "open"])
@pytest.mark.parametrize("way", WAYS)
def test_a_server_that_stands_still_fails_until_it_goes_on(
    server: ServerProcess, way: str, pace: Closed | Open
) -> None:
    with loaded(server, way, pace, timeout_s=0.3) as load:
        server.signal(signal.SIGSTOP)
        try:
            until(lambda: load.failed("no answer within 0.3 s"), "a failure for want of time")
            load.answered()
            until(lambda: load.failed("no answer within 0.3 s"), "a further one")
        finally:
            server.signal(signal.SIGCONT)
        until(lambda: load.answered() > 0, "answers of the server that goes on")


def test_a_killed_server_ends_no_load_and_leaves_nothing(tmp_path: Path, serve: Serve) -> None:
    add_models(tmp_path)
    server = serve(tmp_path, ALLOWED)
    with ExitStack() as stack:
        loads = [stack.enter_context(loaded(server, way, pace)) for way in WAYS for pace in PACES]
        assert mapped_regions(os.getpid())
        server.kill()
        for load in loads:
            until(partial(load.failed, "cannot connect"), "a failure to connect")
    assert not list(SHM.glob(f"alipes-{os.getpid()}-*"))
