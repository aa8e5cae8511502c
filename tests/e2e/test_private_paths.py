"""No answer shows where the server keeps what is its own: folders for temporary files, interpreters, libraries."""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from alipes.process_folder import ProcessFolder
from support.damaged import DAMAGES, add_damaged, remove_all
from support.endpoints import HttpEndpoint
from support.environments import fake_python, make_venv, pack, site_packages
from support.models import times, times_external
from support.python_models import PRELUDE
from support.server import ServerProcess

pytestmark = pytest.mark.slow("loads dozens of models in vain")

Serve = Callable[..., ServerProcess]
Files = dict[str, bytes]

PYTHON = {
    "backend": "python",
    "input": [{"name": "X", "data_type": "TYPE_INT32", "dims": [1]}],
    "output": [{"name": "Y", "data_type": "TYPE_INT32", "dims": [1]}],
}
ONNX = {"backend": "onnxruntime"}
STATE = {
    "sequence_batching": {
        "state": [
            {
                "input_name": "S",
                "output_name": "T",
                "data_type": "TYPE_FP32",
                "dims": [1],
                "initial_state": [{"name": "s", "data_type": "TYPE_FP32", "dims": [1], "data_file": "state"}],
            }
        ]
    }
}
SAMPLE = {"X": {"data_type": "TYPE_FP32", "dims": [2], "input_data_file": "sample"}}
WARMUP = {"model_warmup": [{"name": "s", "batch_size": 1, "inputs": SAMPLE}]}
LABELS = {
    "max_batch_size": 4,
    "input": [{"name": "X", "data_type": "TYPE_FP32", "dims": [2]}],
    "output": [{"name": "Y", "data_type": "TYPE_FP32", "dims": [2], "label_filename": "labels"}],
}
MODEL = "class TritonPythonModel:\n    def {where}(self, *arguments):\n        {what}\n"
RAISES = "raise ValueError(__file__)"


def source(where: str = "execute", what: str = RAISES) -> Files:
    """The file of a model in Python that fails somewhere, and says where it lies."""
    more = "" if where == "execute" else "    def execute(self, requests):\n        return []\n"
    return {"1/model.py": (PRELUDE + MODEL.format(where=where, what=what) + more).encode()}


def environment(name: str) -> dict[str, object]:
    return {"parameters": {"EXECUTION_ENV_PATH": {"string_value": f"$$TRITON_MODEL_DIRECTORY/{name}"}}}


def archive(folder: Path, *, numpy: bool) -> bytes:
    """A packed environment; without numpy no model runs in it."""
    venv = make_venv(folder / "venv", "--copies", numpy=numpy)
    if numpy:
        (site_packages(venv) / "raising.py").write_text("raise ValueError(__file__)\n")
    return pack(venv, folder / "environment.tar.gz").read_bytes()


# Loads that fail, by their configurations and files.
BROKEN: dict[str, tuple[dict[str, object], Files]] = {
    "onnx nonsense": (ONNX, {"1/model.onnx": b"nonsense"}),
    "onnx empty": (ONNX, {"1/model.onnx": b""}),
    "onnx absent": (ONNX, {"1/other": b""}),
    "onnx elsewhere": ({**ONNX, "default_model_filename": "x" * 300}, {"1/model.onnx": b""}),
    "onnx external": (ONNX, {"1/model.onnx": times_external("weights")}),
    "onnx labels": ({**ONNX, **LABELS}, {"1/model.onnx": times().SerializeToString()}),
    "onnx labels odd": ({**ONNX, **LABELS}, {"1/model.onnx": times().SerializeToString(), "labels": b"\xff"}),
    "onnx sample": ({**ONNX, **WARMUP}, {"1/model.onnx": times().SerializeToString()}),
    "onnx sample short": ({**ONNX, **WARMUP}, {"1/model.onnx": times().SerializeToString(), "warmup/sample": b"x"}),
    "onnx version": (ONNX, {"model.onnx": b""}),
    "python absent": (PYTHON, {"1/other": b""}),
    "python syntax": (PYTHON, {"1/model.py": b"def"}),
    "python class": (PYTHON, {"1/model.py": b"x = 1"}),
    "python import": (PYTHON, {"1/model.py": b"raise ValueError(__file__)"}),
    "python completion": (PYTHON, source("auto_complete_config")),
    "python initialize": (PYTHON, source("initialize")),
    "python exits": (PYTHON, {"1/model.py": b"import os; os._exit(1)"}),
    "python helper": (PYTHON, {"1/model.py": b"from . import helper", "1/helper.py": b"raise ValueError(__file__)"}),
    "python sample": ({**PYTHON, **WARMUP}, source("execute")),
    "python state": ({**PYTHON, **STATE}, source("execute")),
    "environment absent": ({**PYTHON, **environment("absent")}, source()),
    "environment damaged": ({**PYTHON, **environment("packed")}, {**source(), "packed": b"\x1f\x8b" + bytes(99)}),
    "streaming": ({"backend": "snapshotter", "parameters": {}}, {"1/x": b""}),
    "ensemble": (
        {
            "platform": "ensemble",
            "input": PYTHON["input"],
            "output": PYTHON["output"],
            "ensemble_scheduling": {
                "step": [
                    {"model_name": "absent", "model_version": -1, "input_map": {"X": "X"}, "output_map": {"Y": "Y"}}
                ]
            },
        },
        {"1/x": b""},
    ),
    "backend": ({"backend": "absent"}, {"1/x": b""}),
    "path": (ONNX, {"../x": b""}),
    "path odd": (ONNX, {"1/" + "x" * 300: b""}),
    "path twice": (ONNX, {"1/x": b"", "1/x/y": b""}),
}


class Private:
    """A server, and the places that no answer may show."""

    def __init__(self, server: ServerProcess, places: list[Path]) -> None:
        self.endpoint = HttpEndpoint(server)
        self._server = server
        self._places = [str(place) for place in places]

    def ask(self, path: str, document: object = None) -> str:
        """The answer to a request, which shows none of the places."""
        body = None if document is None else json.dumps(document).encode()
        text = self.endpoint.call("POST", path, body)[1].decode()
        self.look_at(text)
        return text

    def look_at(self, text: str) -> None:
        shown = [place for place in (*self._places, "alipes-load-", "alipes-repository-") if place in text]
        assert shown == [], text

    def load(self, model: str, config: dict[str, object] | None = None, files: Files | None = None) -> str:
        """The answer to a load, once the index was looked at too."""
        parameters = {f"file:{path}": base64.b64encode(content).decode() for path, content in (files or {}).items()}
        if config is not None:
            parameters["config"] = json.dumps(config)
        text = self.ask(f"/v2/repository/models/{model}/load", {"parameters": parameters})
        self.ask("/v2/repository/index")
        return text

    def wait_for_log(self, text: str) -> None:
        """Returns once the log has a text. It is written before the answer, and read by another thread of the test."""
        self._server.wait_for_output(re.escape(text))


@pytest.fixture(scope="module")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def copied(temporary: Path) -> Iterator[Path]:
    """A repository of damaged models that lies where the copy of a bucket lies."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(temporary))
        holder = ProcessFolder("repository")
        folder = holder.path / "models"
        folder.mkdir()
        for name in DAMAGES:
            add_damaged(folder, name)
        yield folder
        remove_all(folder)
        holder.close()


@pytest.fixture(scope="module")
def private(copied: Path, temporary: Path, serve_module: Serve) -> Iterator[Private]:
    server = serve_module(
        copied,
        "--model-control-mode=explicit",
        "--allow-client-shm=true",
        "--model-load-timeout-secs=30",
        environment={"TMPDIR": str(temporary)},
    )
    made = Private(server, [temporary, copied])
    yield made
    made.endpoint.close()


@pytest.mark.parametrize("name", BROKEN)
def test_a_load_with_files_shows_no_private_path(private: Private, temporary: Path, name: str) -> None:
    text = private.load("m", *BROKEN[name])
    assert "error" in json.loads(text)
    private.ask("/v2/repository/models/m/unload")


@pytest.mark.parametrize("name", DAMAGES)
def test_a_load_from_a_copy_shows_no_private_path(private: Private, name: str) -> None:
    private.load(name)


def test_the_log_keeps_the_path(private: Private, temporary: Path) -> None:
    text = private.load("m", *BROKEN["onnx nonsense"])
    assert "Load model from m/1/model.onnx failed" in text
    private.wait_for_log(f"Load model from {temporary}/alipes-load-")


@pytest.mark.parametrize("where", ["execute", "is_ready"])
def test_an_inference_shows_no_private_path(private: Private, where: str) -> None:
    config = {**PYTHON, "max_batch_size": 0}
    files = source(where) if where == "execute" else source(where, "raise OSError(__file__)")
    assert private.load("m", config, files) == ""
    tensor = {"name": "X", "datatype": "INT32", "shape": [1], "data": [1]}
    text = private.ask("/v2/models/m/infer", {"inputs": [tensor]})
    if where == "execute":
        assert "m/1/model.py(" in text
    private.ask("/v2/models/m/generate", {"X": 1})
    private.look_at(private.endpoint.call("GET", "/v2/models/m/ready")[1].decode())
    private.ask("/v2/repository/models/m/unload")


@pytest.mark.parametrize("numpy", [True, False])
def test_an_environment_shows_neither_its_place_nor_its_interpreter(
    private: Private, tmp_path: Path, numpy: bool
) -> None:
    files = {**source(what="import raising"), "environment.tar.gz": archive(tmp_path, numpy=numpy)}
    text = private.load("m", {**PYTHON, **environment("environment.tar.gz")}, files)
    if numpy:
        assert text == ""
        tensor = {"name": "X", "datatype": "INT32", "shape": [1], "data": [1]}
        text = private.ask("/v2/models/m/infer", {"inputs": [tensor]})
        assert "environment/lib/python" in text
    else:
        assert "the interpreter python of model 'm' has no working numpy" in text
    private.ask("/v2/repository/models/m/unload")


@pytest.mark.parametrize("answer", ["", "{}", "not json"])
def test_an_interpreter_shows_nothing_of_its_place(private: Private, tmp_path: Path, answer: str) -> None:
    python = fake_python(tmp_path, answer)
    parameters = {"parameters": {"EXECUTION_ENV_PATH": {"string_value": str(python)}}}
    text = private.load("m", {**PYTHON, **parameters}, source())
    assert "the interpreter python of model 'm'" in text
    assert str(python) not in text
    private.wait_for_log(str(python))


@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("/v2/systemsharedmemory/region/r/register", {"key": "/absent", "offset": 0, "byte_size": 4}),
        ("/v2/systemsharedmemory/region/r/register", {"key": "../../etc/passwd", "offset": 0, "byte_size": 4}),
        ("/v2/systemsharedmemory/region/r/register", {"key": "x" * 300, "offset": 0, "byte_size": 4}),
        ("/v2/trace/setting", {"trace_file": "/absent/trace.json"}),
        ("/v2/trace/setting", {"trace_rate": "x"}),
        ("/v2/logging", {"log_file": "/absent/log"}),
        ("/v2/logging", {"log_format": "x"}),
        ("/v2/models/absent/infer", {"inputs": []}),
        ("/v2/repository/models/m/load", {"parameters": {"config": "{"}}),
        ("/v2/repository/models/m/load", {"parameters": {"file:1/x": "AA=="}}),
        ("/v2/repository/models/m/load", {"parameters": {"config": "{}", "file:1/x": "no base64"}}),
    ],
)
def test_other_refusals_show_no_private_path(private: Private, path: str, document: object) -> None:
    text = private.ask(path, document)
    assert "error" in json.loads(text)
    private.look_at(text.replace(sys.prefix, "alipes-load-"))
