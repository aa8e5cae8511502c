"""Another number of instances: taken over in place, for engines and for processes, while requests come in."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import tritonclient.http as http_client
from support.models import add_model
from support.server import ServerProcess
from support.traffic import Traffic, answer_of
from support.waiting import until
from tritonclient.utils import InferenceServerException

Serve = Callable[..., ServerProcess]

_PYTHON = """
import os
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        with open(os.path.join(args["model_repository"], "..", "..", "loads"), "a") as loads:
            print(args["model_instance_name"], os.getpid(), file=loads)

    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("Y", x * 2)]))
        return answers
"""

_PORTS = """
backend: "{backend}"
max_batch_size: 4
input [ {{ name: "X" data_type: TYPE_FP32 dims: [ 2 ] }} ]
output [ {{ name: "Y" data_type: TYPE_FP32 dims: [ 2 ] }} ]
instance_group [ {{ name: "g" count: {count} kind: KIND_CPU }} ]
"""


def configure(repository: Path, backend: str, count: int) -> None:
    path = repository / "m" / "config.pbtxt"
    path.write_text(_PORTS.format(backend=backend, count=count))


def add_python_model(repository: Path) -> None:
    (repository / "m" / "1").mkdir(parents=True)
    (repository / "m" / "1" / "model.py").write_text(_PYTHON)


def served(server: ServerProcess) -> int:
    with http_client.InferenceServerClient(server.http) as client:
        groups = client.get_model_config("m")["instance_group"]
    return sum(group["count"] for group in groups)


def load(server: ServerProcess) -> None:
    with http_client.InferenceServerClient(server.http) as client:
        client.load_model("m")


def requests_of(server: ServerProcess) -> int:
    with http_client.InferenceServerClient(server.http) as client:
        return int(client.get_inference_statistics("m")["model_stats"][0]["inference_count"])


def test_engines_come_and_go_and_no_request_is_lost(repository: Path, serve: Serve) -> None:
    add_model(repository, "m")
    configure(repository, "onnxruntime", 1)
    server = serve(repository, "--model-control-mode=explicit", "--load-model=m")
    with Traffic(server, "m") as traffic:
        for count in (4, 2, 1, 3, 1):
            configure(repository, "onnxruntime", count)
            load(server)
            assert served(server) == count
    assert traffic.failures == []
    assert set(traffic.answers) == {2.0}
    assert requests_of(server) == len(traffic.answers), "its books were begun anew"
    assert server.output.count("loading: m:1") == 1


def test_processes_come_and_go_and_those_that_stay_keep_their_state(repository: Path, serve: Serve) -> None:
    add_python_model(repository)
    configure(repository, "python", 1)
    loads = repository.parent / "loads"
    server = serve(repository, "--model-control-mode=explicit", "--load-model=m")
    with Traffic(server, "m") as traffic:
        for count in (3, 2, 3, 1):
            configure(repository, "python", count)
            load(server)
            assert served(server) == count
    assert traffic.failures == []
    assert requests_of(server) == len(traffic.answers)
    started = [line.split() for line in loads.read_text().splitlines()]
    names = sorted(name for name, _ in started)
    assert names == ["g_0", "g_1", "g_2", "g_2"], "an instance that stayed was loaded again"
    first = next(int(pid) for name, pid in started if name == "g_0")
    left = {int(pid) for _, pid in started} - {first}
    until(lambda: not any(psutil.pid_exists(pid) for pid in left))
    os.kill(first, 0)
    assert answer_of(server, "m") == 2.0


def test_an_instance_that_cannot_be_added_leaves_the_others(repository: Path, serve: Serve) -> None:
    add_python_model(repository)
    code = (repository / "m" / "1" / "model.py").read_text()
    failing = code.replace(
        "initialize(self, args):", 'initialize(self, args):\n        assert "_1" not in args["model_instance_name"]'
    )
    (repository / "m" / "1" / "model.py").write_text(failing)
    configure(repository, "python", 1)
    server = serve(repository, "--model-control-mode=explicit", "--load-model=m")
    configure(repository, "python", 2)
    with pytest.raises(InferenceServerException, match="load failed for model 'm': version 1 is at UNAVAILABLE state"):
        load(server)
    assert served(server) == 1
    assert answer_of(server, "m") == 2.0
