"""Requests of several clients are run together only where a row's answer is its own, whatever the shapes allow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from alipes import Client
from onnx import TensorProto, helper, numpy_helper
from support.models import add_model, small_model
from support.server import ServerProcess

CLIENTS, REQUESTS = 16, 12


def floats(name: str, *shape: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def constant(name: str, array: Any) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(array), name)


def centred() -> onnx.ModelProto:
    """Takes the mean over axis 0 away."""
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["mean"], axes=[0], keepdims=1),
        helper.make_node("Sub", ["x", "mean"], ["y"]),
    ]
    return small_model(nodes, [floats("x", "batch", 3)], [floats("y", "batch", 3)], [])


def transposed() -> onnx.ModelProto:
    """Has the time in front, and gives the sequences in front."""
    nodes = [helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0, 2])]
    return small_model(nodes, [floats("x", "T", "N", 3)], [floats("y", "N", "T", 3)], [])


def recurrent() -> onnx.ModelProto:
    """An LSTM as ONNX has it: axis 0 is the time."""
    random = np.random.default_rng(3)
    weights = [constant(name, random.normal(size=(1, 8, 2)).astype("f4")) for name in ("W", "R")]
    nodes = [
        helper.make_node("LSTM", ["x", "W", "R"], ["all"], hidden_size=2),
        helper.make_node("Squeeze", ["all", "axis"], ["y"]),
    ]
    return small_model(
        nodes, [floats("x", "seq", "batch", 2)], [floats("y", "seq", "batch", 2)], [*weights, constant("axis", [1])]
    )


def perceptron() -> onnx.ModelProto:
    """Works on each row by itself."""
    nodes = [helper.make_node("MatMul", ["x", "W"], ["hidden"]), helper.make_node("Relu", ["hidden"], ["y"])]
    weights = constant("W", np.arange(-4, 5, dtype="f4").reshape(3, 3))
    return small_model(nodes, [floats("x", "batch", 3)], [floats("y", "batch", 3)], [weights])


def run(model: onnx.ModelProto, x: Any) -> Any:
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(model).run(None, {"x": x})[0]


MODELS: dict[str, tuple[Callable[[], onnx.ModelProto], tuple[int, ...]]] = {
    "centred": (centred, (4, 3)),
    "recurrent": (recurrent, (3, 1, 2)),
    "transposed": (transposed, (3, 2, 3)),
    "perceptron": (perceptron, (1, 3)),
}


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]
) -> Iterator[ServerProcess]:
    repository: Path = tmp_path_factory.mktemp("models")
    for name, (make, _) in MODELS.items():
        add_model(repository, name, make())
    add_model(repository, "said", centred(), config="max_batch_size: 8")
    yield serve_module(repository, environment={"TMPDIR": str(tmp_path_factory.mktemp("temporary"))})


@pytest.mark.parametrize("name", MODELS)
def test_every_answer_is_right_whoever_asks_beside(server: ServerProcess, name: str) -> None:
    make, shape = MODELS[name]
    model = make()

    def ask(number: int) -> bool:
        random = np.random.default_rng(number)
        with Client(server.http) as client:
            for _ in range(REQUESTS):
                x = random.normal(size=shape).astype("f4")
                if not np.allclose(client.infer(name, {"x": x})["y"], run(model, x), atol=1e-5):
                    return False
        return True

    with ThreadPoolExecutor(CLIENTS) as pool:
        assert all(pool.map(ask, range(CLIENTS)))


@pytest.mark.parametrize(
    ("name", "batches", "dims"),
    [
        ("centred", 0, [-1, 3]),
        ("recurrent", 0, [-1, -1, 2]),
        ("transposed", 0, [-1, -1, 3]),
        ("perceptron", 4, [3]),
        ("said", 8, [3]),
    ],
)
def test_batching_is_completed_where_rows_are_independent(
    server: ServerProcess, name: str, batches: int, dims: list[int]
) -> None:
    with Client(server.http) as client:
        config = client.config(name)
    assert config["max_batch_size"] == batches
    assert [int(size) for size in config["input"][0]["dims"]] == dims
    assert ("dynamic_batching" in config) == (name == "perceptron")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("centred", "it is served without batching, for output 'y' of a row depends on the rows beside it"),
        ("transposed", "it is served without batching, for axis 0 of 'y' is 'N', which is no axis 0 of an input"),
        ("said", "its requests are not run together, for output 'y' of a row depends on the rows beside it"),
    ],
)
def test_one_line_of_the_log_says_why_and_how_to_decide(server: ServerProcess, name: str, reason: str) -> None:
    lines = [line for line in server.output.splitlines() if f"model '{name}': {reason}" in line]
    assert len(lines) == 1
    assert "to decide it yourself, write max_batch_size (0 for none)" in lines[0]
