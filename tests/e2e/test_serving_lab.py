"""The serving lab's classifier: base64 of an image file in, label and probability out, from several instances."""

from __future__ import annotations

import base64
import io
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as image
from support.endpoints import ENDPOINTS
from support.example import EXAMPLES, load_example
from support.processes import workers_of
from support.server import ServerProcess

EXAMPLE = EXAMPLES / "serving-lab"
ROUNDS = 3

make_weights, lab = load_example("serving-lab", "make_weights", "transform")


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example as it lies in the repository, in a folder where it may write."""
    return Path(shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("lab"), dirs_exist_ok=True))


def run(example: Path, script: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, script, *arguments], cwd=example, capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def onnx_server(example: Path, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    assert "wrote models/food_classifier/1/food11.onnx\n" in run(example, "make_weights.py")
    return serve_module(example / "models")


@pytest.fixture(scope="module")
def torch_server(example: Path, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    assert "food11.pth" in run(example, "make_weights.py", "--torch")
    return serve_module(example / "models-torch")


@pytest.fixture(params=["onnx", pytest.param("torch", marks=pytest.mark.extra("torch"))])
def server(request: pytest.FixtureRequest) -> ServerProcess:
    return request.getfixturevalue(f"{request.param}_server")


@pytest.mark.slow("four processes import PyTorch")
def test_the_client_prints_label_and_probability(server: ServerProcess, example: Path) -> None:
    printed = run(example, "classify.py", "test_image.jpeg", "--url", server.http)
    assert printed == "Soup (0.9998)\n"
    server.wait_for_output("BatchSize:  1")


def picture(food: str) -> bytes:
    file = io.BytesIO()
    make_weights.picture(food).save(file, "png")
    return file.getvalue()


def expected(content: bytes) -> float:
    """The probability that the lab's formula gives, computed here."""
    pixels = lab.transform(image.open(io.BytesIO(content)).convert("RGB"))
    weight, bias = make_weights.weights()
    return float(1 / (1 + np.exp(-(weight @ pixels.mean(axis=(1, 2), dtype=np.float64) + bias).max())))


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_many_callers_get_the_label_of_their_own_picture(server: ServerProcess, endpoint: str) -> None:
    foods = list(make_weights.COLOURS)

    def ask(food: str) -> None:
        content = picture(food)
        with ENDPOINTS[endpoint](server) as client:
            for _ in range(ROUNDS):
                reply = client.ask("food_classifier", {"INPUT_IMAGE": [[base64.b64encode(content).decode()]]})
                assert reply["FOOD_LABEL"].tolist() == [[food.encode()]]
                assert reply["PROBABILITY"].dtype == np.float32
                assert reply["PROBABILITY"][0, 0] == pytest.approx(expected(content), rel=1e-4)

    with ThreadPoolExecutor(len(foods)) as pool:
        list(pool.map(ask, foods))


def test_each_instance_is_a_process(onnx_server: ServerProcess, example: Path) -> None:
    assert len(workers_of(onnx_server)) == 2


@pytest.mark.extra("torch")
def test_the_labs_gpu_configuration_runs_on_the_cpu_with_a_notice(torch_server: ServerProcess) -> None:
    assert len(workers_of(torch_server)) == 4
    torch_server.wait_for_output("GPU")


@pytest.mark.extra("torch")
def test_the_transform_does_what_torch_does_with_the_same_picture() -> None:
    import torch

    noise = image.fromarray(np.random.default_rng(0).integers(0, 256, (240, 320, 3), np.uint8))
    resized = np.asarray(noise.resize((224, 224), image.Resampling.BILINEAR))
    pixels = torch.from_numpy(resized.copy()).permute(2, 0, 1).contiguous().to(torch.float32).div(255)
    mean, std = (torch.tensor(values)[:, None, None] for values in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
    assert np.array_equal(lab.transform(noise), pixels.sub(mean).div(std).numpy())
    # Torch's own resize with antialias is the same but for Pillow's rounding to whole numbers, in both of its passes.
    fresh = torch.from_numpy(np.asarray(noise).copy()).permute(2, 0, 1)[None].to(torch.float32)
    own = torch.nn.functional.interpolate(fresh, (224, 224), mode="bilinear", antialias=True)[0]
    assert np.abs(own.numpy() - resized.transpose(2, 0, 1)).max() < 1.1
