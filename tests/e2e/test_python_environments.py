"""Python models in environments of their own, and models that complete their configuration, in a running server."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http as http_client
from support.environments import find_python, make_venv, pack, site_packages
from support.server import ServerProcess
from tritonclient.utils import InferenceServerException

Serve = Callable[..., ServerProcess]

# Needs no configuration file; tells where it runs.
MODEL = """
import json, os, shutil, sys
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        print("completing", file=sys.stderr, flush=True)
        config.add_input({"name": "X", "data_type": "TYPE_INT32", "dims": [1]})
        config.add_output({"name": "FACTS", "data_type": "TYPE_STRING", "dims": [1]})
        config.set_max_batch_size(8)
        config.set_dynamic_batching()
        return config

    def execute(self, requests):
        try:
            import only_here
            value = only_here.VALUE
        except ImportError:
            value = None
        facts = {
            "version": list(sys.version_info[:2]),
            "only_here": value,
            "python": shutil.which("python"),
            "home": os.environ.get("VIRTUAL_ENV"),
        }
        rows = [pb_utils.get_input_tensor_by_name(request, "X").as_numpy().shape[0] for request in requests]
        answers = [np.array([[json.dumps(facts)]] * count, dtype=object) for count in rows]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("FACTS", answer)]) for answer in answers]
"""

COMPLETING = "class TritonPythonModel:\n    @staticmethod\n    def auto_complete_config(config):\n        "


def add_model(repository: Path, name: str, *, environment: str = "", code: str = MODEL) -> Path:
    folder = repository / name
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text(code)
    if environment:
        parameter = f'parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{environment}" }} }}'
        (folder / "config.pbtxt").write_text(f'backend: "python" {parameter}')
    return folder


def facts(server: ServerProcess, model: str) -> dict[str, Any]:
    """What a model tells of the place where it runs."""
    tensor = http_client.InferInput("X", [1, 1], "INT32")
    tensor.set_data_from_numpy(np.array([[1]], np.int32))
    with http_client.InferenceServerClient(server.http) as client:
        answer = client.infer(model, [tensor]).as_numpy("FACTS")
    assert answer is not None
    return dict(json.loads(answer[0, 0]))


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that can be packed, with a package of its own."""
    made = make_venv(tmp_path_factory.mktemp("environments") / "venv", "--copies")
    (site_packages(made) / "only_here.py").write_text("VALUE = 7\n")
    return made


def test_models_of_several_environments_serve_side_by_side(
    repository: Path, venv: Path, serve: Serve, tmp_path: Path
) -> None:
    add_model(repository, "plain")
    add_model(repository, "folder", environment=str(venv))
    packed = add_model(repository, "packed", environment="$$TRITON_MODEL_DIRECTORY/environment.tar.gz")
    pack(venv, packed / "environment.tar.gz")
    server = serve(repository, environment={"TMPDIR": str(tmp_path)})
    assert (facts(server, "plain")["only_here"], facts(server, "plain")["home"]) == (None, None)
    found = facts(server, "folder")
    assert (found["only_here"], found["home"], found["python"]) == (7, str(venv), str(venv / "bin" / "python"))
    found = facts(server, "packed")
    assert found["only_here"] == 7
    assert tmp_path in Path(found["python"]).parents
    assert server.stop() == 0


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_a_model_runs_in_a_newer_python(repository: Path, serve: Serve, version: str) -> None:
    python = find_python(version)
    if python is None or subprocess.run([python, "-c", "import numpy"], capture_output=True, check=False).returncode:
        pytest.skip(f"there is no Python {version} with numpy on this machine")
    add_model(repository, "m", environment=str(python))
    server = serve(repository)
    assert facts(server, "m")["version"] == [int(part) for part in version.split(".")]


def test_an_environment_that_cannot_run_models_is_the_models_failure_alone(
    repository: Path, serve: Serve, tmp_path: Path
) -> None:
    bare = make_venv(tmp_path / "bare", numpy=False)
    add_model(repository, "bare", environment=str(bare))
    add_model(repository, "good")
    server = serve(repository)
    assert facts(server, "good")["only_here"] is None
    assert reason(server, "bare") == (
        "Invalid argument: the interpreter python of model 'bare' has no working numpy "
        "(ModuleNotFoundError: No module named 'numpy'); install it with: python -m pip install numpy"
    )
    assert f"install it with: {bare}/bin/python -m pip install numpy" in server.output


def reason(server: ServerProcess, model: str) -> str:
    with http_client.InferenceServerClient(server.http) as client:
        (entry,) = [entry for entry in client.get_model_repository_index() if entry["name"] == model]
    assert entry["state"] == "UNAVAILABLE"
    return str(entry["reason"])


def test_a_model_completes_its_configuration(repository: Path, serve: Serve) -> None:
    add_model(repository, "m")
    server = serve(repository)
    with http_client.InferenceServerClient(server.http) as client:
        config = client.get_model_config("m")
        assert config["max_batch_size"] == 8
        assert config["dynamic_batching"]["preferred_batch_size"] == [8]
        assert client.get_model_metadata("m")["platform"] == "python"
    assert "completing\n" in server.output


def test_completion_can_be_turned_off(repository: Path, serve: Serve) -> None:
    folder = add_model(repository, "m")
    (folder / "config.pbtxt").write_text("""
        backend: "python"
        input { name: "X" data_type: TYPE_INT32 dims: [ 1, 1 ] }
        output { name: "FACTS" data_type: TYPE_STRING dims: [ 1, 1 ] }
    """)
    server = serve(repository, "--disable-auto-complete-config")
    assert facts(server, "m")["only_here"] is None
    assert "completing" not in server.output


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise ValueError('no')", "Internal: ValueError: no\n\nAt:\n  {file}(4): auto_complete_config\n"),
        (
            "return None",
            "Internal: auto_complete_config function in model 'm' must return a valid pb.ModelConfig object.",
        ),
        (
            "import os; os.kill(os.getpid(), 9)",
            "Internal: the process that completes the configuration of model 'm' was killed by SIGKILL and gave no "
            "answer; it may have said more in the server's output",
        ),
    ],
)
def test_a_completion_that_fails_is_the_reason(repository: Path, serve: Serve, body: str, message: str) -> None:
    folder = add_model(repository, "m", code=COMPLETING + body)
    assert reason(serve(repository), "m") == message.format(file=folder / "1" / "model.py")


def test_a_completion_that_takes_too_long_fails(repository: Path, serve: Serve) -> None:
    add_model(repository, "m", code=f"{COMPLETING}import time; time.sleep(600)")
    server = serve(repository, "--backend-config=python,auto-complete-timeout-seconds=0.5")
    assert reason(server, "m") == (
        "Internal: auto_complete_config of model 'm' did not end within 0.5 s; "
        "--backend-config=python,auto-complete-timeout-seconds=N allows more"
    )


def test_a_failed_completion_is_the_answer_to_the_load(repository: Path, serve: Serve) -> None:
    add_model(repository, "m", code="import absent_module\n")
    server = serve(repository, "--model-control-mode=explicit")
    client = http_client.InferenceServerClient(server.http)
    with client, pytest.raises(InferenceServerException) as caught:
        client.load_model("m")
    assert caught.value.message().startswith(
        "load failed for model 'm': version 1 is at UNAVAILABLE state: Internal: "
        "ModuleNotFoundError: No module named 'absent_module'"
    )


def test_nothing_of_a_completion_is_left_in_the_folder_for_temporary_files(
    repository: Path, serve: Serve, tmp_path: Path
) -> None:
    temporary = Path(tempfile.mkdtemp(dir=tmp_path))
    add_model(repository, "m")
    server = serve(repository, environment={"TMPDIR": str(temporary)})
    assert facts(server, "m")["only_here"] is None
    assert server.stop() == 0
    assert list(temporary.iterdir()) == []
