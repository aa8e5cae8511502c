"""The script that any Python starts, and a model that completes its configuration by it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from alipes.worker import bootstrap

SCRIPT = Path(bootstrap.__file__)


def complete(
    folder: Path, model: str, *, config: dict[str, Any] | None = None, flags: tuple[str, ...] = (), **variables: str
) -> tuple[dict[str, Any], str]:
    """The answer of a model file, and what it printed."""
    version = folder / "m" / "1"
    version.mkdir(parents=True)
    (version / "model.py").write_text(model)
    question = {
        "model_file": str(version / "model.py"),
        "version_directory": str(version),
        "model_config": json.dumps({"name": "m", "input": [], "output": [], "max_batch_size": 0, **(config or {})}),
        "model_name": "m",
    }
    (folder / "question").write_text(json.dumps(question))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, *flags, SCRIPT, "--complete", folder / "question", folder / "answer"],
        capture_output=True,
        text=True,
        check=False,
        env={**environment, **variables},
    )
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "answer").read_text()), done.stdout


COMPLETES = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "A", "data_type": "TYPE_INT32", "dims": [2]})
        config.set_max_batch_size(4)
        print(pb_utils.get_model_dir())
        return config
"""


def test_a_model_completes_its_configuration(tmp_path: Path) -> None:
    answer, printed = complete(tmp_path, COMPLETES)
    assert answer == {
        "answer": {
            "name": "m",
            "input": [{"name": "A", "data_type": "TYPE_INT32", "dims": [2]}],
            "output": [],
            "max_batch_size": 4,
        }
    }
    assert printed == f"{tmp_path}/m/1\n"


def test_a_model_that_completes_nothing_leaves_all_as_it_was(tmp_path: Path) -> None:
    answer, _ = complete(tmp_path, "class TritonPythonModel:\n    pass\n", config={"max_batch_size": 3})
    assert answer["answer"]["max_batch_size"] == 3


def completing(body: str) -> str:
    return f"class TritonPythonModel:\n    @staticmethod\n    def auto_complete_config(config):\n        {body}\n"


@pytest.mark.parametrize("body", ["pass", "return config.as_dict()"])
def test_anything_but_a_configuration_is_refused(tmp_path: Path, body: str) -> None:
    answer, _ = complete(tmp_path, completing(body))
    assert answer == {"error": "auto_complete_config function in model 'm' must return a valid pb.ModelConfig object."}


def test_what_it_raises_is_reported_with_its_traceback(tmp_path: Path) -> None:
    answer, _ = complete(tmp_path, completing("config.set_max_batch_size(1)"), config={"max_batch_size": 2})
    first, _, way = answer["error"].partition("\n\nAt:\n")
    assert first == (
        "ValueError: configuration specified max_batch_size 2, but in auto-complete-config function for model 'm' "
        "specified max_batch_size 1"
    )
    assert way.splitlines()[-1] == f"  {tmp_path}/m/1/model.py(4): auto_complete_config"


def test_a_value_that_is_no_json_is_an_error(tmp_path: Path) -> None:
    answer, _ = complete(tmp_path, completing("config.as_dict()['x'] = object()\n        return config"))
    assert answer["error"].startswith("TypeError: Object of type object is not JSON serializable")


def test_a_failed_import_is_reported(tmp_path: Path) -> None:
    answer, _ = complete(tmp_path, "import module_that_is_not_there\n")
    assert answer["error"] == (
        "ModuleNotFoundError: No module named 'module_that_is_not_there'\n\n"
        f"At:\n  {tmp_path}/m/1/model.py(1): <module>\n"
    )


def test_a_python_without_packages_gets_the_command_to_type(tmp_path: Path) -> None:
    answer, _ = complete(tmp_path, COMPLETES, flags=("-S",))
    assert answer["error"].startswith(f"numpy is not installed for {sys.executable} (Python ")
    assert answer["error"].endswith(f"'{sys.executable} -m pip install numpy'")


def test_neither_the_package_nor_its_neighbours_get_on_the_path() -> None:
    code = (
        f"import importlib.util, sys\nbefore = list(sys.path)\n"
        f"spec = importlib.util.spec_from_file_location('bootstrap', {str(SCRIPT)!r})\n"
        "script = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(script)\nscript.load_package()\n"
        "import alipes\nprint(alipes.__file__)\nprint(sys.path == before)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(SCRIPT.parents[1] / "__init__.py"), "True"]


def test_a_model_does_not_import_the_files_of_the_worker(tmp_path: Path) -> None:
    answer, _ = complete(tmp_path, "import completion\n")
    assert answer["error"].startswith("ModuleNotFoundError: No module named 'completion'")


def test_an_old_python_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 1, "final", 0))
    assert bootstrap.refusal() == (
        f"{sys.executable} (Python 3.9.1) cannot run Python models: Python 3.11 or newer is needed"
    )


def test_a_worker_started_by_hand_explains_itself() -> None:
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == ("a worker has nothing to do by itself: `alipes serve` starts it, and hands it its link\n")


def test_helpers_of_the_model_can_import_its_file(tmp_path: Path) -> None:
    model = """
import multiprocessing
import triton_python_backend_utils as pb_utils


def double(value):
    return 2 * value


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            config.set_max_batch_size(pool.apply(double, (4,)))
        return config
"""
    answer, _ = complete(tmp_path, model)
    assert answer["answer"]["max_batch_size"] == 8


def test_a_worker_imports_nothing_heavy(tmp_path: Path) -> None:
    heavy = {"numpy", "asyncio", "typer", "rich", "google.protobuf", "onnxruntime", "alipes.config", "alipes.server"}
    code = "import sys\nimport alipes.worker.main, alipes.worker.executor\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert heavy & set(done.stdout.split()) == set()
