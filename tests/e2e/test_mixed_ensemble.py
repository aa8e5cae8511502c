"""One ensemble of five steps in four frameworks: a picture goes in, the names of its best classes come out.

The environment of the extra mlflow is the one that holds PyTorch and TensorFlow beside each other.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from alipes import Client, InferError
from alipes import repository as qv
from support.models import add_model, times
from support.server import ServerProcess

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch", reason="TorchScript needs it: pip install 'alipes[torch]'")
    keras = pytest.importorskip("keras", reason="SavedModels need it: pip install 'alipes[keras]'")
    Image = pytest.importorskip("PIL.Image")

pytestmark = [pytest.mark.extra("mlflow"), pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)]

SIDE, CLASSES, BEST, FACTOR = 8, 5, 2, 3.0
NAMES = [f"class-{number}" for number in range(CLASSES)]

READ = f"""
backend: "picture"
max_batch_size: 8
parameters {{ key: "resize" value: {{ string_value: "{SIDE}" }} }}
parameters {{ key: "crop" value: {{ string_value: "{SIDE}" }} }}
"""
BEST_CLASSES = f"""
backend: "top_k"
max_batch_size: 8
input {{ name: "scores" data_type: TYPE_FP32 dims: [ {CLASSES} ] }}
parameters {{ key: "k" value: {{ string_value: "{BEST}" }} }}
parameters {{ key: "softmax" value: {{ string_value: "1" }} }}
parameters {{ key: "labels" value: {{ string_value: "names.txt" }} }}
"""
SCALE = f"""
backend: "onnxruntime"
max_batch_size: 8
input {{ name: "X" data_type: TYPE_FP32 dims: [ {CLASSES} ] }}
output {{ name: "Y" data_type: TYPE_FP32 dims: [ {CLASSES} ] }}
"""
ENSEMBLE = f"""
platform: "ensemble"
max_batch_size: 8
input {{ name: "file" data_type: TYPE_STRING dims: [ 1 ] }}
output [
  {{ name: "names" data_type: TYPE_STRING dims: [ {BEST} ] }},
  {{ name: "shares" data_type: TYPE_FP32 dims: [ {BEST} ] }}
]
ensemble_scheduling {{ step [
  {{ model_name: "read" model_version: -1
    input_map {{ key: "picture" value: "file" }} output_map {{ key: "tensor" value: "pixels" }} }},
  {{ model_name: "features" model_version: -1
    input_map {{ key: "pixels" value: "pixels" }} output_map {{ key: "features" value: "features" }} }},
  {{ model_name: "head" model_version: -1
    input_map {{ key: "features" value: "features" }} output_map {{ key: "logits" value: "logits" }} }},
  {{ model_name: "scale" model_version: -1
    input_map {{ key: "X" value: "logits" }} output_map {{ key: "Y" value: "scores" }} }},
  {{ model_name: "best" model_version: -1
    input_map {{ key: "scores" value: "scores" }}
    output_map {{ key: "labels" value: "names" }} output_map {{ key: "scores" value: "shares" }} }}
] }}
"""


def features() -> Any:
    """Three channels of pixels to four numbers."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()
    ).eval()


def head() -> Any:
    keras.utils.set_random_seed(0)
    numbers = keras.Input((4,), name="features")
    return keras.Model(numbers, keras.layers.Dense(CLASSES, name="logits")(numbers))


def picture(seed: int) -> tuple[bytes, np.ndarray]:
    """A file without loss, and its pixels as the step reads them."""
    pixels = np.random.default_rng(seed).integers(0, 256, (SIDE, SIDE, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue(), np.moveaxis(pixels, -1, 0).astype("f4") / 255


def expected(pixels: np.ndarray) -> tuple[list[bytes], np.ndarray]:
    """What the frameworks themselves make of it, in this process."""
    with torch.no_grad():
        numbers = features()(torch.from_numpy(pixels[None])).numpy()
    scores = FACTOR * np.asarray(head()(numbers))[0]
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    order = np.argsort(-shares)[:BEST]
    return [NAMES[at].encode() for at in order], shares[order]


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]
) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("models")
    repository = qv.ModelRepository(folder)
    repository.add("features", qv.Platform.TORCHSCRIPT, max_batch_size=8).export_version(
        features(), input_shapes={"pixels": (None, 3, SIDE, SIDE)}, output_names=["features"]
    )
    repository.add("head", qv.Platform.SAVEDMODEL, max_batch_size=8).export_version(head(), output_names=["logits"])
    add_model(folder, "scale", times(FACTOR, columns=CLASSES), config=SCALE)
    for name, config in (("read", READ), ("best", BEST_CLASSES), ("label", ENSEMBLE)):
        (folder / name / "1").mkdir(parents=True)
        (folder / name / "config.pbtxt").write_text(config)
    (folder / "best" / "names.txt").write_text("".join(f"{name}\n" for name in NAMES))
    yield serve_module(folder)


def test_each_step_runs_in_its_own_framework(server: ServerProcess) -> None:
    with Client(server.grpc, timeout_s=120) as client:
        backends = {name: client.config(name)["backend"] for name in ("read", "features", "head", "scale", "best")}
    assert backends == {
        "read": "picture",
        "features": "pytorch",
        "head": "tensorflow",
        "scale": "onnxruntime",
        "best": "top_k",
    }


def test_a_picture_goes_through_all_frameworks(server: ServerProcess) -> None:
    with Client(server.grpc, timeout_s=120) as client:
        for seed in range(3):
            file, pixels = picture(seed)
            found = client.infer("label", {"file": np.array([[file]], object)})
            names, shares = expected(pixels)
            assert found["names"].tolist() == [names]
            np.testing.assert_allclose(found["shares"], [shares], rtol=1e-4)


def test_pictures_of_several_clients_keep_their_answers(server: ServerProcess) -> None:
    files = [picture(seed) for seed in range(16)]
    with Client(server.grpc, timeout_s=120) as client, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda one: client.infer("label", {"file": np.array([[one[0]]], object)}), files))
    for found, (_, pixels) in zip(answers, files, strict=True):
        assert found["names"].tolist() == [expected(pixels)[0]]


def test_a_broken_picture_is_refused_at_the_first_step(server: ServerProcess) -> None:
    with Client(server.grpc, timeout_s=120) as client:
        with pytest.raises(InferError, match="picture"):
            client.infer("label", {"file": np.array([[b"no picture"]], object)})
        file, pixels = picture(0)
        assert client.infer("label", {"file": np.array([[file]], object)})["names"].tolist() == [expected(pixels)[0]]
