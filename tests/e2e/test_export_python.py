"""Python functions and files exported for the Python backend, and served: what they use goes with them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes import repository as qv
from alipes.errors import ExportError
from support.endpoints import ENDPOINTS, Refusal
from support.server import ServerProcess

OFFSET = 3.5
LABELS = {"low": 0, "high": 1}
WEIGHTS = np.arange(8, dtype=np.float32).reshape(4, 2)
OPENED = object()


def shifted(values: np.ndarray) -> np.ndarray:
    return values + OFFSET


def whiten(strain: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Uses a module, a constant, an array and another function of its own module."""
    if (scale < 0).any():
        raise ValueError("a scale is negative")
    largest: np.floating[Any] = np.abs(strain).max(axis=1)
    return shifted(strain @ WEIGHTS * scale), largest * math.sqrt(4.0) + len(LABELS)


def by_name(x: np.ndarray) -> dict[str, np.ndarray]:
    return {"doubled": x * 2, "text": np.array([[str(row)] for row in x[:, 0]], dtype=object)}


def opens(x: np.ndarray) -> np.ndarray:
    return x if OPENED else -x


def misspelt(x: np.ndarray) -> np.ndarray:
    return x + no_such_name  # type: ignore[name-defined] # noqa: F821


@lru_cache
def cached(x: np.ndarray) -> np.ndarray:
    return x


def around(factor: float) -> Callable[[np.ndarray], np.ndarray]:
    def inner(x: np.ndarray) -> np.ndarray:
        return x * factor

    return inner


@pytest.fixture
def repo(tmp_path: Path) -> qv.ModelRepository:
    return qv.ModelRepository(tmp_path / "models")


@pytest.fixture
def model(repo: qv.ModelRepository) -> qv.Model:
    return repo.add("m", qv.Platform.PYTHON)


def test_a_function_is_served_with_all_that_it_uses(
    repo: qv.ModelRepository, model: qv.Model, serve: Callable[..., ServerProcess]
) -> None:
    path = model.export_version(
        whiten, input_shapes={"scale": (None, 2), "strain": (None, 4)}, output_names=["white", "largest"]
    )
    assert path == "m/1/model.py"
    assert model.fs.list("m/1") == ["app.json", "app.py", "arrays.npz", "model.py"]
    assert 'backend: "python"' in str(model.config)
    assert (model.outputs["white"].shape, model.outputs["largest"].shape) == ((None, 2), (None,))
    named = repo.add("named", qv.Platform.PYTHON)
    named.export_version(by_name, input_shapes={"x": (None, 3)}, input_dtypes={"x": "int64"}, output_names=["d", "t"])
    assert [tensor.datatype for tensor in named.outputs.values()] == ["INT64", "BYTES"]

    server = serve(str(repo.fs))
    rng = np.random.default_rng(0)
    strain, scale = rng.random((5, 4), np.float32), rng.random((5, 2), np.float32)
    for endpoint in ENDPOINTS.values():
        with endpoint(server) as client:
            reply = client.ask("m", {"strain": strain, "scale": scale})
            white, largest = whiten(strain, scale)
            np.testing.assert_array_equal(reply["white"], white)
            np.testing.assert_array_equal(reply["largest"], largest.astype(np.float32))
            with pytest.raises(Refusal, match="ValueError: a scale is negative"):
                client.ask("m", {"strain": strain, "scale": -scale})
            reply = client.ask("named", {"x": np.full((1, 3), 4, np.int64)})
            assert reply["t"].tolist() == [[b"4"]]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (opens, "'opens' uses 'OPENED', a object: only modules"),
        (misspelt, "uses 'no_such_name', which is not defined"),
        (around(2.0), "'inner' uses factor of the function around it"),
        (lambda x: x, "is no plain function"),
    ],
)
def test_what_cannot_be_written_down_is_named(model: qv.Model, function: Any, message: str) -> None:
    with pytest.raises(ExportError, match=message):
        model.export_version(function, input_shapes={"x": (None, 1)})
    assert (model.versions, model.inputs) == ([], {})


def test_only_plain_functions_are_exported(model: qv.Model) -> None:
    with pytest.raises(TypeError, match=r"cannot export a functools\._lru_cache_wrapper as PYTHON"):
        model.export_version(cached, input_shapes={"x": (None, 1)})


def test_a_function_needs_shapes_once(model: qv.Model) -> None:
    with pytest.raises(ExportError, match="Must specify input shapes"):
        model.export_version(shifted)
    model.export_version(shifted, input_shapes=[(None, 2)])
    assert model.inputs["values"].datatype == "FP32"
    assert model.export_version(shifted) == "m/2/model.py"
    with pytest.raises(ExportError, match="a size beside the batch is variable"):
        qv.ModelRepository(Path(str(model.fs)) / "b").add("m", qv.Platform.PYTHON).export_version(
            shifted, input_shapes={"values": (None, None)}
        )


FILE = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "x", "data_type": "TYPE_FP32", "dims": [2]})
        config.add_output({"name": "y", "data_type": "TYPE_FP32", "dims": [2]})
        return config

    def execute(self, requests):
        arrays = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", array + 1)]) for array in arrays]
"""


def test_a_file_is_served_as_it_is(
    repo: qv.ModelRepository, model: qv.Model, tmp_path: Path, serve: Callable[..., ServerProcess]
) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "model.py").write_text(FILE)
    (tmp_path / "code" / "helper.py").touch()
    model.export_version(tmp_path / "code" / "model.py")
    assert model.export_version(tmp_path / "code") == "m/2/model.py"
    assert model.fs.list("m/2") == ["helper.py", "model.py"]
    with ENDPOINTS["http"](serve(str(repo.fs))) as client:
        assert client.ask("m", {"x": np.zeros(2, np.float32)})["y"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("text", "message"), [("def (", "is no Python"), ("class Model: ...", "defines no class TritonPythonModel")]
)
def test_a_file_that_no_server_could_run_is_refused(model: qv.Model, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "wrong.py").write_text(text)
    with pytest.raises(ExportError, match=message):
        model.export_version(tmp_path / "wrong.py")
    assert model.versions == []
