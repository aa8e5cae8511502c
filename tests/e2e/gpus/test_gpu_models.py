"""Models on real GPUs, and what the wheel of ONNX Runtime for GPUs says without one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tritonclient.http as http_client
from alipes import _core
from alipes.backends.onnxruntime.gpu_libraries import has_cuda_provider
from alipes.backends.onnxruntime.library import find_library
from support.gpus import StubGpu, StubMachine, has_real_gpu
from support.models import add_model, times
from support.server import ServerProcess
from tritonclient.utils import InferenceServerException

Client = http_client.InferenceServerClient

PORTS = """
max_batch_size: 4
input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]
"""
ONNX = 'backend: "onnxruntime"' + PORTS
ON_GPUS = "instance_group { kind: KIND_GPU }\n"
CACHED = """
optimization { execution_accelerators { gpu_execution_accelerator { name: "tensorrt"
    parameters { key: "precision_mode" value: "FP16" } } } }
"""

needs_wheel = pytest.mark.skipif(
    not has_cuda_provider(find_library()), reason="needs the wheel onnxruntime-gpu in place of onnxruntime"
)


def doubled(server: ServerProcess, model: str, rows: int = 3) -> None:
    """Asks a model that doubles, more often than it has instances."""
    x = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)
    with Client(server.http) as client:
        tensor = http_client.InferInput("X", list(x.shape), "FP32")
        tensor.set_data_from_numpy(x)
        for _ in range(4):
            assert np.array_equal(client.infer(model, [tensor]).as_numpy("Y"), 2 * x)


@needs_wheel
@pytest.mark.skipif(has_real_gpu(), reason="this machine has a GPU")
@pytest.mark.parametrize(("accelerator", "provider"), [("", "CUDA"), (CACHED, "TensorRT")])
def test_a_provider_that_does_not_start_says_what_it_lacks(tmp_path: Path, accelerator: str, provider: str) -> None:
    machine = StubMachine(tmp_path / "gpus", StubGpu("GPU-33aa0000-0000-0000-0000-000000000000"))
    add_model(tmp_path / "models", "fast", times(), config=ONNX + ON_GPUS + accelerator)
    add_model(tmp_path / "models", "safe", times(), config=ONNX + "instance_group { kind: KIND_CPU }")
    environment = dict(machine.environment)
    with ServerProcess(tmp_path / "models", "--model-control-mode=explicit", environment=environment) as server:
        with Client(server.wait_until_started().http) as client:
            with pytest.raises(InferenceServerException) as caught:
                client.load_model("fast")
            client.load_model("safe")
        doubled(server, "safe")
    text = str(caught.value.message())
    assert f"ONNX Runtime's {provider} provider does not start: Failed to load" in text
    assert "cannot open shared object file" in text
    assert "pip install 'onnxruntime-gpu[cuda,cudnn]'" in text
    assert str(find_library().parent) not in text


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


@pytest.mark.gpu
@needs_wheel
def test_an_onnx_model_answers_the_same_on_every_gpu(models: Path) -> None:
    add_model(models, "auto", times(), config=ONNX)
    add_model(models, "all", times(), config=ONNX + ON_GPUS)
    with ServerProcess(models) as server, Client(server.wait_until_started().http) as client:
        for model in ("auto", "all"):
            group = client.get_model_config(model)["instance_group"][0]
            assert (group["kind"], group["gpus"]) == ("KIND_GPU", [gpu.index for gpu in _core.gpus()])
            doubled(server, model)


@pytest.mark.gpu
@needs_wheel
def test_two_instances_share_a_gpu(models: Path) -> None:
    add_model(models, "pair", times(), config=ONNX + "instance_group { kind: KIND_GPU count: 2 gpus: [ 0 ] }\n")
    with ServerProcess(models) as server, Client(server.wait_until_started().http) as client:
        group = client.get_model_config("pair")["instance_group"][0]
        assert (group["count"], group["gpus"]) == (2, [0])
        doubled(server, "pair")


def add_twice(models: Path, name: str, group: str) -> None:
    """A TorchScript model that doubles."""
    torch = pytest.importorskip("torch")
    from support.torch_models import save_script  # which imports torch

    class Twice(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x):  # type: ignore[no-untyped-def]
            return x * 2

    (models / name / "1").mkdir(parents=True)
    save_script(Twice())(models / name / "1")
    (models / name / "config.pbtxt").write_text('backend: "pytorch"' + PORTS + group)


@pytest.mark.extra("torch")
@pytest.mark.skipif(has_real_gpu(), reason="this machine has a GPU")
def test_a_wheel_of_pytorch_for_cpus_says_that_it_finds_no_gpu(tmp_path: Path) -> None:
    machine = StubMachine(tmp_path / "gpus", StubGpu("GPU-33bb0000-0000-0000-0000-000000000000"))
    add_twice(tmp_path / "models", "asked", ON_GPUS)
    add_twice(tmp_path / "models", "auto", "")
    environment = dict(machine.environment)
    with ServerProcess(tmp_path / "models", "--model-control-mode=explicit", environment=environment) as server:
        with Client(server.wait_until_started().http) as client:
            with pytest.raises(InferenceServerException, match=r"it is to run on cuda:0, and PyTorch .* finds no GPU"):
                client.load_model("asked")
            client.load_model("auto")
        doubled(server, "auto")


@pytest.mark.gpu
@pytest.mark.extra("torch")
def test_a_model_of_pytorch_answers_from_its_gpu(models: Path) -> None:
    add_twice(models, "twice", ON_GPUS)
    with ServerProcess(models) as server:
        server.wait_until_started()
        doubled(server, "twice")
