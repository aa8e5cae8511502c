"""Inputs of ONNX files that have no shape are told from single numbers, and named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from alipes.backends.base import Draft
from alipes.backends.onnxruntime.backend import OnnxruntimeBackend
from alipes.backends.onnxruntime.ranks import inputs_without_shape
from alipes.backends.prepare import LoadPlan, prepare_version
from alipes.config.load import parse_flags
from alipes.config.poll import poll_model
from alipes.errors import ConfigError
from onnx import TensorProto, helper, numpy_helper

Shape = list[int | str] | None


def write(file: Path, **inputs: Shape) -> Path:
    """A model that adds its inputs and a large weight of its own."""
    total = numpy_helper.from_array(np.zeros(1 << 16, "f4"), "weight")
    names = ["weight", *inputs]
    nodes = [helper.make_node("Sum", names, ["y"])]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    return save(file, helper.make_graph(nodes, "graph", ports, [output], [total]))


def save(file: Path, graph: onnx.GraphProto) -> Path:
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)
    return file


@pytest.mark.parametrize(
    ("inputs", "found"),
    [
        ({"a": None, "b": ["batch", 1]}, ["a"]),
        ({"a": [], "b": [1]}, []),
        ({"a": ["n"], "ß": None}, ["ß"]),
    ],
    ids=["none", "a number has no sizes", "a name beyond ASCII"],
)
def test_inputs_without_a_shape_are_found(tmp_path: Path, inputs: dict[str, Shape], found: list[str]) -> None:
    assert inputs_without_shape(write(tmp_path / "model.onnx", **inputs)) == found


def test_a_file_that_is_cut_or_damaged_ends_the_search(tmp_path: Path) -> None:
    whole = write(tmp_path / "model.onnx", a=None).read_bytes()
    for size in (0, 1, 7, len(whole) // 2):
        (tmp_path / "model.onnx").write_bytes(whole[:size])
        assert inputs_without_shape(tmp_path / "model.onnx") == []
    (tmp_path / "model.onnx").write_bytes(b"\xff" * 4096)
    assert inputs_without_shape(tmp_path / "model.onnx") == []


def load(folder: Path, config: str = "", **inputs: Shape) -> LoadPlan:
    """What a load makes of a file with such inputs, asked of ONNX Runtime."""
    version = folder / "m" / "1"
    if not version.exists():
        version.mkdir(parents=True)
        write(version / "model.onnx", **inputs)
    if config:
        (folder / "m" / "config.pbtxt").write_text(config)
    options = parse_flags([str(folder)], {})
    draft = Draft(poll_model(folder / "m", "m", options), folder / "m", 1, options)
    return prepare_version(draft, backend_of=lambda name: OnnxruntimeBackend)


LISTED = """
input [{{ name: "a" data_type: TYPE_FP32 dims: [{0}] }}]
output [{{ name: "y" data_type: TYPE_FP32 dims: [-1] }}]
"""


@pytest.mark.parametrize("config", ["", LISTED.format("-1, 3")], ids=["nothing is listed", "other sizes are listed"])
def test_a_file_that_says_no_shape_is_refused_for_that(tmp_path: Path, config: str) -> None:
    with pytest.raises(ConfigError) as failure:
        load(tmp_path, config, a=None)
    assert "unable to load model 'm': the file does not say the shape of input 'a', not even its" in str(failure.value)
    assert "export the model with shapes" in str(failure.value.hint)


def test_a_number_is_served_as_one(tmp_path: Path) -> None:
    assert load(tmp_path, a=[]).spec["inputs"][0]["dims"] == [1]


def test_an_output_of_open_rank_is_declared_as_triton_declares_it(tmp_path: Path) -> None:
    # Source: the completion of Triton's ONNX Runtime backend, which makes no sizes [1]; answers have their own.
    sizes = helper.make_tensor_value_info("sizes", TensorProto.INT64, ["rank"])
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["a", "sizes"], ["y"])],
        "graph",
        [helper.make_tensor_value_info("a", TensorProto.FLOAT, ["n"]), sizes],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    (tmp_path / "m" / "1").mkdir(parents=True)
    save(tmp_path / "m" / "1" / "model.onnx", graph)
    plan = load(tmp_path)
    assert (plan.spec["outputs"][0]["dims"], plan.spec["max_batch_size"]) == ([1], 0)
