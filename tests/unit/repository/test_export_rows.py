"""Whether a model treats each row of a call by itself, so that an export may join requests."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import onnx
import pytest
from alipes import repository as qv
from alipes.errors import ExportError
from alipes.repository.export.request import ExportRequest
from alipes.repository.export.rows import why_not_joined
from support.exported import scaled


def request(folder: Path, shape: tuple[int, ...], datatype: str, outputs: Mapping[str, tuple[Any, ...]]) -> Any:
    """An export that declares an input x and these outputs."""
    config = qv.ModelRepository(folder).add("m", "python", max_batch_size=8).config
    config.add_input("x", (None, *shape), datatype)
    for name, (sizes, kind) in outputs.items():
        config.add_output(name, (None, *sizes), kind)
    return ExportRequest(config, folder)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x * 2 + 1, None),
        (lambda x: np.linalg.norm(x, axis=1), None),
        (lambda x: x @ np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3), None),
        (lambda x: np.sqrt(x) + 1, None),
        (lambda x: x - x.mean(), "what it returns for a row depends on the other rows of the call (output 'y')"),
        (lambda x: np.cumsum(x, axis=0), "what it returns for a row depends on the other rows of the call"),
        (lambda x: np.sort(x, axis=0), "what it returns for a row depends on the other rows of the call"),
        (lambda x: x[:1], "it returns another number of rows than it gets"),
        (lambda x: x.sum(), "it returns another number of rows than it gets"),
        # Three rows and their like show none of these.
        (lambda x: x - x.mean(0) * (len(x) > 4), "output 'y' of a row"),
        (lambda x: x + (x.max() > 20), "output 'y' of a row"),
        (lambda x: x + (np.abs(x[:, :1] - x[::-1, :1]) > 9), "output 'y' of a row"),
    ],
)
@pytest.mark.parametrize("alike", [False, True])
def test_a_function_whose_rows_depend_on_each_other_is_found(
    tmp_path: Path, function: Callable[..., Any], reason: str | None, alike: bool
) -> None:
    sample = np.ones((3, 4), np.float32) if alike else np.random.default_rng(0).random((3, 4), np.float32)
    wanted = request(tmp_path, (4,), "FP32", {"y": ((4,), "FP32")})
    found = why_not_joined(wanted, lambda arrays: [np.asarray(function(**arrays))], {"x": sample})
    assert (found is None) == (reason is None)
    assert (found or "").startswith(reason or "")


def test_a_function_that_takes_no_single_row_is_called_alone(tmp_path: Path) -> None:
    wanted = request(tmp_path, (4,), "FP32", {"y": ((4,), "FP32")})
    sample = np.ones((3, 4), np.float32)
    found = why_not_joined(wanted, lambda arrays: [arrays["x"][[0, 1]] + arrays["x"][[1, 2]]], {"x": sample})
    assert found == "it could not be called on single rows"


@pytest.mark.parametrize(
    "sample", [np.zeros((3, 4), np.int64), np.full((3, 1), b"text", object), np.zeros((3, 2), np.uint8)], ids=str
)
def test_rows_are_distinguished_in_every_datatype(tmp_path: Path, sample: np.ndarray) -> None:
    def length(x: Any) -> Any:
        return np.array([[len(str(value)) for value in row] for row in x], np.int64)

    datatype = "BYTES" if sample.dtype == object else sample.dtype.name
    wanted = request(tmp_path, sample.shape[1:], datatype, {"y": (sample.shape[1:], "INT64")})
    assert why_not_joined(wanted, lambda arrays: [length(arrays["x"])], {"x": sample}) is None
    whole = why_not_joined(wanted, lambda arrays: [length(arrays["x"]) * len(set(arrays["x"].flat))], {"x": sample})
    assert whole is not None


def untouched(x: Annotated[np.ndarray, np.float32, (None, 2)]) -> Annotated[np.ndarray, np.float32, (None, 2)]:
    raise AssertionError("it may write to a database")


def test_an_annotated_function_is_not_called_by_its_export(tmp_path: Path) -> None:
    model = qv.ModelRepository(tmp_path).add("m", "python")
    model.export_version(untouched, max_batch_size=8)
    assert model.config.max_batch_size == 8
    with pytest.raises(ExportError, match="database"):  # a function without annotations is called
        qv.ModelRepository(tmp_path).add("n", "python").export_version(
            plain, input_shapes={"x": (None, 2)}, output_names=["y"], max_batch_size=8
        )


def plain(x):  # type: ignore[no-untyped-def]  # annotations would say what it takes
    raise AssertionError("it may write to a database")


def centred() -> onnx.ModelProto:
    """Takes the mean of all rows away."""
    made: onnx.ModelProto = scaled()
    del made.graph.node[:]
    made.graph.node.extend(
        [
            onnx.helper.make_node("ReduceMean", ["x"], ["mean"], axes=[0], keepdims=1),
            onnx.helper.make_node("Sub", ["x", "mean"], ["y"]),
        ]
    )
    return made


def test_a_model_that_batches_is_refused_if_its_rows_depend_on_each_other(tmp_path: Path) -> None:
    repo = qv.ModelRepository(tmp_path)
    model = repo.add("m", "onnx")
    with pytest.raises(ExportError, match="with max_batch_size 8, requests of several clients are run together, but"):
        model.export_version(centred(), max_batch_size=8)
    assert (model.versions, model.config.max_batch_size) == ([], 0)
    model.export_version(centred())
    repo.add("rows", "onnx").export_version(scaled(), max_batch_size=8)


def test_dependent_rows_are_published_on_request(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    repo = qv.ModelRepository(tmp_path)
    repo.add("quiet", "onnx").export_version(centred(), max_batch_size=8, check=False)
    assert caplog.text == ""
    with caplog.at_level(logging.WARNING):
        repo.add("warned", "onnx").export_version(centred(), max_batch_size=8, check="warn")
    assert "requests of several clients are run together, but" in caplog.text
