"""Python models that load models, with files that they bring along."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.models import times
from support.server import ServerProcess
from support.text_models import add_model, ask
from support.traffic import answer_of

FLAGS = ("--model-control-mode=explicit", "--load-model=loader")

# Says what came of each load: "loaded", or the error.
LOADER = """
CONFIG = json.dumps({"backend": "onnxruntime"})
ONNX = open(pb_utils.get_model_dir() + "/brought.onnx", "rb").read()


class TritonPythonModel:
    def execute(self, requests):
        return [good(self.outcome(text(request))) for request in requests]

    def outcome(self, how):
        try:
            getattr(self, how)()
        except pb_utils.TritonModelException as error:
            return error
        return "loaded"

    def onnx(self):
        pb_utils.load_model(model_name="onnx", files={"file:1/model.onnx": ONNX}, config=CONFIG)

    def large(self):
        more = {"file:1/model.onnx": ONNX, "file:/more": os.urandom(3 << 20)}
        pb_utils.load_model("large", CONFIG, more)

    def gone(self):
        pb_utils.unload_model("onnx")

    def code(self):
        config = {"backend": "python", "input": [PORT | {"name": "HOW"}], "output": [PORT | {"name": "OUT"}]}
        files = {"file:1/model.py": SHOUT, "file:1/how.py": b"HOW = '!'"}
        pb_utils.load_model("shout", json.dumps(config), files)

    def no_config(self):
        pb_utils.load_model("onnx", files={"file:1/model.onnx": ONNX})

    def outside(self):
        pb_utils.load_model("onnx", CONFIG, {"file:1/model.onnx": ONNX, "file:../x": b""})

    def no_file(self):
        pb_utils.load_model("onnx", CONFIG, {"1/model.onnx": ONNX})

    def no_bytes(self):
        pb_utils.load_model("onnx", CONFIG, {"file:1/model.onnx": "text"})


PORT = {"data_type": "TYPE_STRING", "dims": [1]}
SHOUT = b'''
import numpy as np
import triton_python_backend_utils as pb_utils
from how import HOW

class TritonPythonModel:
    def execute(self, requests):
        texts = [pb_utils.get_input_tensor_by_name(request, "HOW").as_numpy()[0].decode() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([text + HOW], object))]) for text in texts]
'''
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("models")
    add_model(made, "loader", LOADER)
    (made / "loader" / "1" / "brought.onnx").write_bytes(times(7.0).SerializeToString())
    return made


@pytest.fixture(scope="module")
def server(serve_module: Callable[..., ServerProcess], models: Path) -> ServerProcess:
    return serve_module(models, *FLAGS)


def test_a_model_loads_and_unloads_another_from_bytes(server: ServerProcess) -> None:
    assert ask(server, "loader", "onnx") == (200, "loaded")
    assert answer_of(server, "onnx") == 7.0
    assert ask(server, "loader", "gone") == (200, "loaded")
    assert ask(server, "onnx", "x")[0] == 404


def test_files_may_be_large(server: ServerProcess) -> None:
    assert ask(server, "loader", "large") == (200, "loaded")
    assert answer_of(server, "large") == 7.0


def test_files_take_room_like_those_of_a_request(models: Path, serve: Callable[..., ServerProcess]) -> None:
    server = serve(models, *FLAGS, f"--max-inflight-bytes={4 << 20}")
    status, text = ask(server, "loader", "large")
    assert status == 200
    assert text.startswith("Failed to load model: a body of ")
    assert "give the server more with --max-inflight-bytes" in text
    assert ask(server, "loader", "onnx") == (200, "loaded")


def test_code_may_come_from_bytes(server: ServerProcess) -> None:
    assert ask(server, "loader", "code") == (200, "loaded")
    assert ask(server, "shout", "hey") == (200, "hey!")


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("no_config", "Failed to load model: failed to load 'onnx', failed to poll from model repository"),
        ("outside", "Failed to load model: failed to load 'onnx', failed to poll from model repository"),
        ("no_file", "Failed to load model: unrecognized load parameter '1/model.onnx'."),
        (
            "no_bytes",
            "failed to load model 'onnx', a file should be a path and bytes, got 'file:1/model.onnx' and str",
        ),
    ],
)
def test_what_a_model_brings_is_checked_as_over_http(server: ServerProcess, how: str, error: str) -> None:
    assert ask(server, "loader", how) == (200, error)
