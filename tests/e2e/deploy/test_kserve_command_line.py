"""The command lines of the runtimes that we write for KServe start servers that serve what KServe puts there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes import Client
from alipes.deploy.kserve.objects import kserve_objects
from alipes.deploy.kserve.reading import described
from support.kserve_values import VALUE_SETS
from support.models import add_model, times
from support.server import ServerProcess

pytestmark = pytest.mark.extra("deploy")

Serve = Callable[..., ServerProcess]
ROWS = np.array([[1, 2]], np.float32)


def command_line(values: dict[str, Any], runtime: str, service: str, store: Path) -> list[str]:
    """What KServe makes of a runtime's arguments, in a folder of the test and at ports of the system's choice."""
    (found,) = [each for each in kserve_objects(described(values)) if each["metadata"]["name"] == runtime]
    (server,) = found["spec"]["containers"]
    assert server["command"] == ["alipes", "serve"]
    words = [word.replace("{{.Name}}", service).replace("/mnt/models", str(store)) for word in server["args"]]
    ports = [word for word in words if word.partition("=")[0].endswith("-port")]
    assert len(ports) == 3
    return [word for word in words if word not in ports]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The contents of a model's folder, as KServe's initializer leaves them: flat, and without its name."""
    add_model(tmp_path / "repository", "times", times())
    (tmp_path / "store").mkdir()
    (model,) = (tmp_path / "repository").rglob("model.onnx")
    shutil.copyfile(model, tmp_path / "store" / "model.onnx")
    return tmp_path / "store"


@pytest.mark.parametrize("runtime", ["alipes-onnx", "alipes-sklearn"])
def test_a_flat_model_is_served_by_the_service_s_name(store: Path, serve: Serve, runtime: str) -> None:
    first, *words = command_line(VALUE_SETS["one model"], runtime, "iris", store)
    with Client(serve(first, *words).http) as client:
        assert client.infer("iris", ROWS).tolist() == [[2, 4]]


def test_many_models_wait_for_the_agent(store: Path, tmp_path: Path, serve: Serve) -> None:
    (tmp_path / "models").mkdir()
    first, *words = command_line(VALUE_SETS["many models"], "alipes-models", "alipes-0", tmp_path / "models")
    with Client(serve(first, *words).http) as client:
        assert client.models() == []
        # KServe's agent: the folder first, a mark beside it, then the request; at the end the folder goes before it.
        (tmp_path / "models" / "third").mkdir()
        shutil.copyfile(store / "model.onnx", tmp_path / "models" / "third" / "model.onnx")
        (tmp_path / "models" / "third" / "SUCCESS.0a1b").write_text("")
        client.load("third")
        assert client.infer("third", ROWS).tolist() == [[2, 4]]
        shutil.rmtree(tmp_path / "models" / "third")
        client.unload("third")
        assert not client.is_ready("third")
