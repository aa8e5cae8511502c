"""What a lecture and a notebook on inference as a service do with a repository, line by line, and what they show."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton
from alipes import repository as qv
from support.lecture import CONFIG, INPUT_SIZE, SCALED
from support.server import ServerProcess

torch = pytest.importorskip("torch", reason="exports of PyTorch models need PyTorch")

pytestmark = pytest.mark.extra("torch")

TREE = """\
my-repo/
    my-model/
        1/
            model.onnx
{second}        config.pbtxt
"""
SECOND = """\
        2/
            model.onnx
"""


@pytest.fixture
def inference_model() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(INPUT_SIZE, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))


@pytest.fixture
def noise_remover() -> Any:
    return torch.nn.Sequential(torch.nn.Linear(INPUT_SIZE, INPUT_SIZE), torch.nn.BatchNorm1d(INPUT_SIZE))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def tree(path: str) -> str:
    shown = io.StringIO()
    qv.print_tree(path, shown)
    return shown.getvalue()


@pytest.mark.proof
@pytest.mark.slow("a whole lecture is run")
def test_the_lecture(here: Path, inference_model: Any, noise_remover: Any, serve: Callable[..., ServerProcess]) -> None:
    repo = qv.ModelRepository("my-repo")
    entry = repo.add("my-model", platform=qv.Platform.ONNX)
    assert str(entry.config) == 'name: "my-model"\nplatform: "onnxruntime_onnx"\n'

    inference_model.to("cpu")
    export_path = entry.export_version(inference_model, input_shapes={"x": (None, INPUT_SIZE)}, output_names=["y"])
    assert export_path == "my-model/1/model.onnx"
    assert repr(entry.config) == CONFIG
    assert tree("my-repo") == TREE.format(second="")

    entry.export_version(inference_model)
    assert tree("my-repo") == TREE.format(second=SECOND)
    entry.config.add_instance_group(count=4)
    assert repr(entry.config) == SCALED

    repo.delete()
    assert not Path("my-repo").exists()

    repo = qv.ModelRepository("my-bucket")
    entry = repo.add("my-model", platform=qv.Platform.ONNX)
    entry.config.add_instance_group(count=4)
    entry.export_version(inference_model, input_shapes={"x": (None, INPUT_SIZE)}, output_names=["y"])
    noise_entry = repo.add("noise-remover", platform=qv.Platform.ONNX)
    noise_entry.config.add_instance_group(count=4)
    noise_remover.to("cpu")
    noise_entry.export_version(noise_remover, input_shapes={"noisy": (None, INPUT_SIZE)}, output_names=["cleaned"])

    ensemble_entry = repo.add("end-to-end", platform=qv.Platform.ENSEMBLE)
    ensemble_entry.add_input(noise_entry.inputs["noisy"])
    ensemble_entry.pipe(noise_entry.outputs["cleaned"], entry.inputs["x"])
    ensemble_entry.add_output(entry.outputs["y"])
    assert ensemble_entry.export_version(None) == "end-to-end/1/model.empty"

    server = serve("my-bucket", "--model-control-mode=explicit")
    with triton.InferenceServerClient(server.grpc) as client:
        client.load_model("end-to-end")
        assert client.is_model_ready("noise-remover")  # ensemble loads all its "step" models
        assert client.is_model_ready("end-to-end")
        noisy = np.random.default_rng(0).standard_normal((8, INPUT_SIZE)).astype(np.float32)
        tensor = triton.InferInput("noisy", noisy.shape, "FP32")
        tensor.set_data_from_numpy(noisy)
        y = client.infer("end-to-end", [tensor]).as_numpy("y")
    with torch.no_grad():
        expected = inference_model(noise_remover.eval()(torch.from_numpy(noisy))).numpy()
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_the_notebook_exports_with_minus_one_for_the_batch(here: Path) -> None:
    nn = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(2 * INPUT_SIZE, 1))
    repo = qv.ModelRepository("model-repo")
    assert len(repo.models) == 0
    model = repo.add("my-classifier", platform=qv.Platform.ONNX)
    assert len(repo.models) == 1
    assert model == repo.models["my-classifier"]
    assert model.export_version(nn, input_shapes={"hoft": (-1, 2, INPUT_SIZE)}, output_names=["prob"]) == (
        "my-classifier/1/model.onnx"
    )
    assert model.versions == [1]
    assert model.inputs["hoft"].shape == (None, 2, INPUT_SIZE)
    # What people do with a repository that is there already.
    again = qv.ModelRepository("model-repo")
    model = again.models["my-classifier"]
    try:
        model.config.scale_instance_group(3)
    except ValueError:
        model.config.add_instance_group(count=3)
    model.config.write()
    assert int(Path(model.export_version(nn)).parent.name) == 2
    assert qv.ModelRepository("model-repo").models["my-classifier"].config.instance_group[0].count == 3
