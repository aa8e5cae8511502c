"""What an import costs, counted in packages: the time follows from them."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("numpy", "google.protobuf", "rich", "typer", "onnxruntime", "grpc", "asyncio")


def loaded_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(' '.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_importing_alipes_loads_nothing_but_what_finds_its_names() -> None:
    loaded = loaded_after("import alipes")
    assert {name for name in loaded if name.startswith("alipes.")} == {"alipes.lazily"}
    assert loaded.isdisjoint(HEAVY)


def test_importing_alipes_costs_no_more_than_its_two_files() -> None:
    small = loaded_after("import __future__, importlib, types")
    assert loaded_after("import alipes") - small == {"alipes", "alipes.lazily"}


@pytest.mark.parametrize("statement", ["import alipes.server.process", "from alipes import Server"])
def test_importing_the_server_loads_no_heavy_package(statement: str) -> None:
    assert loaded_after(statement).isdisjoint(HEAVY)


@pytest.mark.parametrize(
    "statement",
    ["from alipes.serve import serve", "import alipes.serve.child", "from alipes.monitor import ServerMonitor"],
)
def test_importing_what_starts_and_watches_servers_loads_no_heavy_package(statement: str) -> None:
    assert loaded_after(statement).isdisjoint(HEAVY)


def test_importing_clients_loads_no_package_but_what_holds_arrays() -> None:
    assert loaded_after("import alipes.client").isdisjoint(HEAVY)
    for name in ("InferenceClient", "Client", "StreamClient", "FakeServer"):
        assert loaded_after(f"from alipes.client import {name}").isdisjoint({*HEAVY} - {"numpy"}), name


def test_importing_the_repository_loads_no_framework() -> None:
    loaded = loaded_after("from alipes import repository as qv; qv.ModelRepository, qv.Platform, qv.EnsembleModel")
    assert loaded.isdisjoint({"numpy", "onnxruntime", "onnx", "torch", "tensorflow", "keras", "sklearn", "fsspec"})
    assert loaded_after("import alipes.repository, alipes.streaming").isdisjoint(HEAVY)
    loaded = loaded_after("from alipes.streaming import add_streaming_model, make_streaming_input_model")
    assert loaded.isdisjoint({"numpy", "onnxruntime", "onnx", "torch"})


@pytest.mark.parametrize(
    "statement",
    [
        "from alipes.repository import *",
        "from alipes.streaming import add_streaming_model, make_streaming_input_model, take_states",
        "from alipes.client import *",
        "from alipes.serve import *",
        "from alipes.monitor import *",
        "import alipes.compat.hermes, hermes.aeriel.monitor, hermes.quiver",
    ],
)
def test_an_import_sets_no_variable_and_starts_no_thread(statement: str) -> None:
    code = f"import os, threading\nbefore = dict(os.environ)\n{statement}\n"
    code += "assert dict(os.environ) == before\nprint(threading.active_count())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr) == ("1\n", "")


def test_the_version_is_printed_without_the_rest_of_the_command_line() -> None:
    loaded = loaded_after("from alipes.cli import main\nassert main(['--version']) == 0")
    assert {name for name in loaded if name.startswith("alipes.")} <= {"alipes.cli", "alipes.lazily", "alipes._core"}
    assert loaded.isdisjoint({*HEAVY, "click", "pathlib"})


def test_serving_needs_no_package_of_the_command_line_but_its_parser() -> None:
    statement = "from alipes.cli import main\nassert main(['serve', '/nowhere/at/all', '--http-port=0']) == 1"
    assert loaded_after(statement).isdisjoint({"rich", "typer", "numpy", "onnxruntime"})
    words = "['tritonserver', '--model-repository=/nowhere/at/all', '--http-port=0']"
    statement = f"from alipes.cli import main\nassert main({words}) == 1"
    assert loaded_after(statement).isdisjoint({"rich", "typer", "click", "numpy", "onnxruntime"})
