"""A server that lets clients share memory with it, and the clients of both endpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.gpu_memory import GpuDriver, build_stub
from support.models import add_model, times
from support.python_models import add_python_model
from support.regions import ALLOWED, CLIENTS, NO_GPUS, RegionClient
from support.server import ServerProcess
from support.waiting import until

Serve = Callable[..., ServerProcess]

# A request waits until another one joins it: what the test does in between happens while the request is in.
PAIRS = "max_batch_size: 2 dynamic_batching { max_queue_delay_microseconds: 60000000 }"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of the stub that stands for the driver of GPUs."""
    return build_stub(tmp_path_factory.mktemp("driver"))


@pytest.fixture(scope="module")
def driver(library: Path) -> GpuDriver:
    """The stub in the client's process."""
    return GpuDriver(library)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    """A server with a model of each kind that looks at tensors in a way of its own."""
    repository: Path = tmp_path_factory.mktemp("models")
    add_model(repository, "times", times(columns="columns"), config="max_batch_size: 0")
    add_model(repository, "pairs", times(columns="columns"), config=PAIRS)
    add_python_model(repository, "floats", signature="X: FP32[-1] -> Y: FP32[-1]")
    add_python_model(repository, "numbers", signature="X: INT32[-1] -> Y: INT32[-1]")
    add_python_model(repository, "texts", signature="X: BYTES[-1] -> Y: BYTES[-1]")
    return serve_module(repository, ALLOWED, environment=NO_GPUS)


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, server: ServerProcess) -> Iterator[RegionClient]:
    """A client of the server, once for each protocol; it leaves no region behind."""
    made = RegionClient(request.param, server)
    yield made
    made.unregister()
    # The thread that carried a request to a worker may still hold its region when the answer has come.
    until(lambda: made.regions() == [], "a region is still held")
    made.close()
