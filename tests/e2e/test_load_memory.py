"""What loading and unloading leaves behind: nothing that grows."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from support.models import add_model, busy
from support.server import ServerProcess
from support.waiting import until

pytestmark = pytest.mark.alone

Serve = Callable[..., ServerProcess]

# The more loads, the smaller the leak that shows: the proof finds one of a fifth of what the gate finds.
IN_THE_GATE, IN_THE_PROOF = 200, 1000
# When everything that a server keeps for good is there.
SETTLED = 10
ALLOWED_GROWTH = 1.05

_PYTHON = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        xs = [pb_utils.get_input_tensor_by_name(request, "X").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", x)]) for x in xs]
"""
_PORTS = """
backend: "python"
max_batch_size: 4
input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]
"""


class Rounds:
    """Loads, asks and unloads one model."""

    def __init__(self, server: ServerProcess, model: str, tensor: dict[str, object]) -> None:
        host, port = server.http.split(":")
        self._process = psutil.Process(server.process.pid)
        self._connection = http.client.HTTPConnection(host, int(port), timeout=60)
        self._model = model
        self._body = json.dumps({"inputs": [tensor]})

    def close(self) -> None:
        self._connection.close()

    def run(self, count: int) -> int:
        """Memory in RAM after so many more rounds, in bytes."""
        for _ in range(count):
            self._post(f"/v2/repository/models/{self._model}/load", "")
            self._post(f"/v2/models/{self._model}/infer", self._body)
            self._post(f"/v2/repository/models/{self._model}/unload", "")
        return int(self._process.memory_info().rss)

    def _post(self, path: str, body: str) -> None:
        self._connection.request("POST", path, body)
        answer = self._connection.getresponse()
        text = answer.read()
        assert answer.status == 200, text


@pytest.mark.slow("hundreds of loads")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("count", [IN_THE_GATE, pytest.param(IN_THE_PROOF, marks=pytest.mark.proof)])
def test_many_loads_of_an_engine_leave_nothing_behind(repository: Path, serve: Serve, count: int) -> None:
    add_model(repository, "m", busy())
    server = serve(repository, "--model-control-mode=explicit")
    tensor = {"name": "STEPS", "shape": [1], "datatype": "INT64", "data": [1]}
    with closing(Rounds(server, "m", tensor)) as rounds:
        before = rounds.run(SETTLED)
        after = rounds.run(count - SETTLED)
    assert after <= before * ALLOWED_GROWTH, f"{before} bytes after {SETTLED} rounds, {after} after {count}"


@pytest.mark.slow("thirty loads of processes")
@pytest.mark.timeout(600)
def test_loads_of_processes_leave_neither_memory_nor_processes(repository: Path, serve: Serve) -> None:
    (repository / "m" / "1").mkdir(parents=True)
    (repository / "m" / "1" / "model.py").write_text(_PYTHON)
    (repository / "m" / "config.pbtxt").write_text(_PORTS)
    server = serve(repository, "--model-control-mode=explicit")
    tensor = {"name": "X", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}
    process = psutil.Process(server.process.pid)
    with closing(Rounds(server, "m", tensor)) as rounds:
        before, files = rounds.run(SETTLED), process.num_fds()
        after = rounds.run(2 * SETTLED)
    assert after <= before * ALLOWED_GROWTH
    _, alive = psutil.wait_procs(process.children(recursive=True), timeout=60)
    assert alive == []
    until(lambda: process.num_fds() <= files)
