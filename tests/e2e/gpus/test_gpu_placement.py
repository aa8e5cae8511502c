"""Instances on GPUs: where each runs, and what is said where that cannot be. The GPUs are those of a stub driver."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tritonclient.http as http_client
from support.gpus import StubGpu, StubMachine
from support.models import add_model, times
from support.python_models import add_python_model
from support.server import ServerProcess
from tritonclient.utils import InferenceServerException

Client = http_client.InferenceServerClient

# Each instance writes down where it is.
PLACED = """
class TritonPythonModel:
    def initialize(self, args):
        kind, device = args["model_instance_kind"], args["model_instance_device_id"]
        order = os.environ.get("CUDA_DEVICE_ORDER")
        note(f"{args['model_name']} {args['model_instance_name']}", json.dumps([kind, device, order]))

    def execute(self, requests):
        return [answer(Y=given(request)) for request in requests]
"""

APP = """
import alipes

@alipes.model(device="gpu")
class where:
    def setup(self, device: str) -> None:
        self.device = device

    def predict(self, word: str) -> str:
        return word + self.device
"""

ONNX = """
backend: "onnxruntime"
max_batch_size: 4
input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]
"""

OLD = StubGpu("GPU-22aa0000-0000-0000-0000-000000000000", compute_capability="5.2")
NEW = StubGpu("GPU-22bb0000-0000-0000-0000-000000000000", compute_capability="8.6")
NEWER = StubGpu("GPU-22cc0000-0000-0000-0000-000000000000", compute_capability="9.0")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> StubMachine:
    """Three GPUs, of which the first is too old."""
    return StubMachine(tmp_path_factory.mktemp("gpus"), OLD, NEW, NEWER)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("placed")


@pytest.fixture(scope="module")
def server(machine: StubMachine, folder: Path) -> Iterator[ServerProcess]:
    models, notes = folder / "models", folder / "notes"
    notes.mkdir()
    for name, group in {
        "everywhere": "{ kind: KIND_GPU count: 2 }",
        "one": "{ kind: KIND_GPU gpus: [ 2 ] }",
        "auto": "{ }",
        "auto_named": "{ gpus: [ 1 ] }",
        "mixed": '{ kind: KIND_CPU }, { kind: KIND_GPU gpus: [ 1 ] name: "fast" }, { kind: KIND_MODEL }',
        "too_old": "{ kind: KIND_GPU gpus: [ 1, 0 ] }",
        "twice": "{ kind: KIND_GPU gpus: [ 1, 1 ] }",
        "on_a_cpu": "{ kind: KIND_CPU gpus: [ 1 ] }",
        "moved": "{ kind: KIND_GPU gpus: [ 1 ] }",
    }.items():
        add_python_model(models, name, PLACED, config=f"instance_group [ {group} ]")
    add_model(models, "plain", times(), config=ONNX)
    add_model(models, "fast", times(), config=ONNX + "instance_group { kind: KIND_GPU gpus: [ 1 ] }")
    add_model(models, "tuned", times(), config=ONNX + TUNED)
    softmax = 'backend: "softmax" max_batch_size: 4 instance_group { kind: KIND_GPU }\n'
    (models / "step" / "1").mkdir(parents=True)
    (models / "step" / "config.pbtxt").write_text(softmax)
    environment = {**machine.environment, "NOTES": str(notes)}
    with ServerProcess(models, "--model-control-mode=explicit", environment=environment) as server:
        yield server.wait_until_started()


TUNED = """
instance_group { kind: KIND_GPU }
optimization { execution_accelerators { gpu_execution_accelerator { name: "tensorrt"
    parameters { key: "precision_mode" value: "FP8" } } } }
"""


def load(server: ServerProcess, model: str) -> None:
    with Client(server.http) as client:
        client.load_model(model)


def refusal(server: ServerProcess, model: str) -> str:
    with pytest.raises(InferenceServerException) as caught:
        load(server, model)
    return str(caught.value.message())


def noted(folder: Path, model: str) -> dict[str, tuple[str, str]]:
    """Kind and device of each instance, by its name."""
    notes = {file.name.partition(" ")[2]: json.loads(file.read_text()) for file in folder.glob(f"notes/{model} *")}
    assert {order for _, _, order in notes.values()} == {"PCI_BUS_ID"}
    return {name: (kind, device) for name, (kind, device, _) in notes.items()}


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (
            "everywhere",
            {
                "everywhere_0_0_gpu1": ("GPU", "1"),
                "everywhere_0_0_gpu2": ("GPU", "2"),
                "everywhere_0_1_gpu1": ("GPU", "1"),
                "everywhere_0_1_gpu2": ("GPU", "2"),
            },
        ),
        ("one", {"one_0_0_gpu2": ("GPU", "2")}),
        ("auto", {"auto_0_0": ("CPU", "0")}),
        ("auto_named", {"auto_named_0_0_gpu1": ("GPU", "1")}),
        ("mixed", {"mixed_0_0": ("CPU", "0"), "fast_0_gpu1": ("GPU", "1"), "mixed_2_0": ("MODEL", "0")}),
    ],
)
def test_each_instance_knows_where_it_runs(
    server: ServerProcess, folder: Path, model: str, expected: dict[str, tuple[str, str]]
) -> None:
    load(server, model)
    assert noted(folder, model) == expected


def test_the_configuration_shows_the_gpus(server: ServerProcess) -> None:
    load(server, "everywhere")
    with Client(server.http) as client:
        group = client.get_model_config("everywhere")["instance_group"][0]
    assert (group["kind"], group["count"], group["gpus"]) == ("KIND_GPU", 2, [1, 2])


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (
            "too_old",
            "instance group too_old_0 of model too_old specifies invalid or unsupported gpu id 0. GPUs with at least "
            "the minimum required CUDA compute compatibility of 6.000000 are: 1, 2",
        ),
        ("twice", "names a GPU twice: raise its count"),
        ("on_a_cpu", "instance group on_a_cpu_0 of model on_a_cpu has kind KIND_CPU but specifies one or more GPUs"),
    ],
)
def test_gpus_that_cannot_be_had_are_refused(server: ServerProcess, model: str, text: str) -> None:
    assert text in refusal(server, model)


def test_instances_move_to_another_gpu_in_place(server: ServerProcess, folder: Path) -> None:
    load(server, "moved")
    config = folder / "models" / "moved" / "config.pbtxt"
    config.write_text(config.read_text().replace("gpus: [ 1 ]", "gpus: [ 2 ] count: 2"))
    load(server, "moved")
    assert sorted(noted(folder, "moved")) == ["moved_0_0_gpu1", "moved_0_0_gpu2", "moved_0_1_gpu2"]


def test_a_native_step_stays_on_the_cpu_with_a_notice(server: ServerProcess) -> None:
    load(server, "step")
    server.wait_for_output("instance group step_0 of model step asks for a GPU and runs on the CPU")


def test_an_onnx_model_without_groups_serves_by_the_wheel_for_cpus(server: ServerProcess) -> None:
    load(server, "plain")
    with Client(server.http) as client:
        x = http_client.InferInput("X", [1, 2], "FP32")
        x.set_data_from_numpy(np.array([[1.0, 2.0]], np.float32))
        assert client.infer("plain", [x]).as_numpy("Y").tolist() == [[2.0, 4.0]]
        assert client.get_model_config("plain")["instance_group"][0]["kind"] == "KIND_CPU"


def test_an_onnx_model_on_a_gpu_says_which_wheel_it_needs(server: ServerProcess) -> None:
    text = refusal(server, "fast")
    assert re.search(r"ONNX Runtime.*CUDA provider", text), text
    assert "pip install 'onnxruntime-gpu[cuda,cudnn]'" in text


def test_a_setting_of_tensorrt_that_there_is_not_is_refused(server: ServerProcess) -> None:
    assert "unsupported precision mode 'FP8' is requested" in refusal(server, "tuned")


def test_a_class_of_an_app_has_its_device(machine: StubMachine, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    with (
        ServerProcess(tmp_path / "app.py", environment=dict(machine.environment)) as server,
        Client(server.wait_until_started().http) as client,
    ):
        group = client.get_model_config("where")["instance_group"][0]
        assert (group["kind"], group["gpus"]) == ("KIND_GPU", [1, 2])
        asked = urllib.request.Request(f"http://{server.http}/where", json.dumps({"word": "on "}).encode())
        answers = {json.load(urllib.request.urlopen(asked, timeout=60)) for _ in range(40)}
    assert answers <= {"on cuda:1", "on cuda:2"}
    assert answers
