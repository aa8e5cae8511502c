"""A model whose framework is not installed says how to install it, and others are served."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec

import numpy as np
import pytest
from alipes import Client
from support.framework_models import reason
from support.models import add_model
from support.server import ServerProcess

# The files of a version, and what brings their framework.
MODELS = {
    "openvino": (["model.xml", "model.bin"], "openvino", "alipes[openvino]"),
    "savedmodel": (["model.savedmodel/saved_model.pb"], "tensorflow", "alipes[keras]"),
    "flat": (["saved_model.pb"], "tensorflow", "alipes[keras]"),
}


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]
) -> Iterator[ServerProcess]:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    for name, (files, _, _) in MODELS.items():
        for file in files:
            path = repository / name / "1" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
    yield serve_module(repository, "--exit-on-error=false")


@pytest.mark.parametrize("model", MODELS)
def test_a_missing_framework_is_named_with_its_extra(server: ServerProcess, model: str) -> None:
    _, package, extra = MODELS[model]
    if find_spec(package) is not None:
        pytest.skip(f"{package} is installed")
    found = reason(server, model)
    assert f"model '{model}' needs the package '{package}'" in found
    assert f"install it with: pip install '{extra}'" in found


def test_others_are_served_beside_them(server: ServerProcess) -> None:
    with Client(server.http) as client:
        assert np.array_equal(client.infer("double", {"X": np.ones((1, 2), "f4")})["Y"], [[2, 2]])
