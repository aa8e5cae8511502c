"""Load tests whose tensors lie in memory that the server maps too."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from alipes import Client, ConfigError, InferError, NotFound
from alipes.loadtest import Closed, Measuring, ModelRequests, SharedMemoryRequests, run
from support.models import add_model, times
from support.python_models import add_python_model
from support.regions import ALLOWED, mapped_regions
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

Serve = Callable[..., ServerProcess]

SHM = Path("/dev/shm")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    repository: Path = tmp_path_factory.mktemp("models")
    add_model(repository, "double", times(columns=3))
    add_python_model(repository, "echo", signature="X: BYTES[-1] -> Y: BYTES[-1]")
    return serve_module(repository, ALLOWED)


@pytest.mark.parametrize("wire", ["http", "grpc"])
@pytest.mark.parametrize("output_bytes", [0, 4096])
@pytest.mark.parametrize("model", ["double", "echo"])
def test_only_the_places_of_tensors_are_sent(server: ServerProcess, wire: str, output_bytes: int, model: str) -> None:
    address = f"{wire}://{getattr(server, wire)}"
    shapes = {"X": [7]} if model == "echo" else {}
    with SharedMemoryRequests(
        ModelRequests(model, shapes=shapes, variety=3), address, output_bytes=output_bytes
    ) as requests:
        region = requests.region
        assert region in mapped_regions(os.getpid())
        result = run(requests, Closed(2), address=address, measuring=Measuring(count=50)).levels[0].result
        assert (result.answers, result.failures) == (50, {})
    assert region not in mapped_regions(os.getpid())
    with pytest.raises(ConfigError, match="inside of their with block"):
        run(requests, address=address)


def test_the_answers_are_those_of_the_inputs(server: ServerProcess) -> None:
    address = f"http://{server.http}"
    data = {"X": np.array([[[1, 2, 3]]], np.float32)}
    with SharedMemoryRequests(ModelRequests("double", data=data), address, output_bytes=64) as requests:
        run(requests, address=address, measuring=Measuring(count=3))
        begin = mapped_regions(os.getpid())[requests.region]
        content = np.frombuffer(ctypes.string_at(begin, 128), np.float32)
    assert content[:3].tolist() == [1, 2, 3]
    assert content[16:19].tolist() == [2, 4, 6]


def test_nothing_is_left_when_the_model_is_unknown(server: ServerProcess) -> None:
    before = set(SHM.iterdir())
    with pytest.raises(NotFound), SharedMemoryRequests(ModelRequests("nobody"), f"http://{server.http}"):
        pass
    assert not [path for path in set(SHM.iterdir()) - before if path.name.startswith("alipes-")]


def test_a_server_that_shares_nothing_refuses(tmp_path: Path, serve: Serve) -> None:
    add_model(tmp_path / "models", "double", times(columns=3))
    server = serve(tmp_path / "models")
    with pytest.raises(InferError), SharedMemoryRequests(ModelRequests("double"), f"http://{server.http}"):
        pass


SCRIPT = """
import sys
from alipes.loadtest import Measuring, ModelRequests, SharedMemoryRequests, run

with SharedMemoryRequests(ModelRequests("double"), sys.argv[1], output_bytes=64) as requests:
    print(requests.region, flush=True)
    run(requests, address=sys.argv[1], measuring=Measuring(window_s=600))
"""


def test_ctrl_c_removes_the_memory(server: ServerProcess) -> None:
    command = [sys.executable, "-c", SCRIPT, f"http://{server.http}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as tester:
        try:
            assert tester.stdout is not None
            region = tester.stdout.readline().strip()
            with Client(f"http://{server.http}") as client:
                until(lambda: int(client.statistics("double")[0]["inference_stats"]["success"]["count"]) > 10)
            assert region in mapped_regions(tester.pid)
            tester.send_signal(signal.SIGINT)
            tester.wait(TIMEOUT_S)
        finally:
            tester.kill()
    assert not (SHM / region).exists()
