"""The command lines of perf_analyzer that tutorials print run as they are printed, but for the server asked."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from support.command import alipes
from support.models import add_model, small_model
from support.python_models import add_python_model
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

# A tutorial on serving, and the second part of Triton's own; the first has another name for the model's input than the
# model has.
PRINTED = [
    "perf_analyzer -u triton_server:8000 -m food_classifier --input-data input.json -b 1",
    "perf_analyzer -u triton_server:8000 -m food_classifier --input-data input.json -b 1 --concurrency-range 8",
    "perf_analyzer -u triton_server:8000 -m food_classifier --input-data input.json -b 1 --concurrency-range 16",
    "perf_analyzer -u triton_server:8000 -m food_classifier --input-data input.json -b 16 --concurrency-range 1",
    "perf_analyzer -u triton_server:8000 -m food_classifier_onnx -b 1 --shape IMAGE:3,224,224 --concurrency-range 1",
    "perf_analyzer -u triton_server:8000 -m food_classifier_onnx -b 1 --shape IMAGE:3,224,224 --concurrency-range 8 "
    "--warmup-request-count 500 --request-count 20000",
    "perf_analyzer -u triton_server:8000 -m food_classifier_onnx -b 1 --shape IMAGE:3,224,224 --concurrency-range 16 "
    "--warmup-request-count 500 --request-count 20000",
    *(
        "perf_analyzer -u triton_server:8000 -m food_classifier_onnx -b 1 --shape IMAGE:3,224,224 "
        f"--request-rate-range {rate} --request-distribution {distribution}"
        for rate, distribution in [
            (120, "constant"),
            (120, "poisson"),
            (180, "poisson"),
            (240, "poisson"),
            (300, "poisson"),
        ]
    ),
    "perf_analyzer -m text_recognition -b 2 --shape input.1:1,32,100 --concurrency-range 2:16:2 --percentile=95",
]
# Behind the printed words: short windows, of which any is good enough, and few requests.
QUICK = ("-p", "150", "-s", "1000000")
FEW = ("--warmup-request-count", "20", "--request-count", "60")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> Iterator[ServerProcess]:
    repository = tmp_path_factory.mktemp("printed") / "models"
    add_model(repository, "food_classifier_onnx", means("input", (3, 224, 224)), config="max_batch_size: 16\n")
    add_model(repository, "text_recognition", means("input.1", (1, 32, 100)), config="max_batch_size: 8\n")
    signature = "INPUT_IMAGE: BYTES[1] -> FOOD_LABEL: BYTES[1]"
    add_python_model(repository, "food_classifier", LABELS, signature=signature, config="max_batch_size: 16\n")
    yield serve_module(repository)


LABELS = """
class TritonPythonModel:
    def execute(self, requests):
        return [answer(FOOD_LABEL=given(request, "INPUT_IMAGE")) for request in requests]
"""


def means(name: str, shape: tuple[int, ...]) -> onnx.ModelProto:
    """The mean of each row; FP32 `name` of `[batch, *shape]`."""
    axes = list(range(1, len(shape) + 1))
    nodes = [helper.make_node("ReduceMean", [name], ["mean"], axes=axes, keepdims=0)]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", *shape])]
    return small_model(nodes, inputs, [helper.make_tensor_value_info("mean", TensorProto.FLOAT, ["batch"])], [])


@pytest.mark.parametrize("line", PRINTED)
def test_a_printed_command_line_measures_all_its_levels(line: str, server: ServerProcess, tmp_path: Path) -> None:
    (tmp_path / "input.json").write_text(json.dumps({"data": [{"INPUT_IMAGE": ["aGVsbG8="]}]}))
    words = [word.replace("triton_server:8000", server.http) for word in shlex.split(line)]
    address = () if "-u" in words else ("-u", server.http)
    counted = FEW if "--request-count" in words else ()
    done = alipes(*words, *address, *QUICK, *counted, folder=tmp_path)
    assert done.code == 0, done.err
    summary = done.out[done.out.index("Inferences/Second vs. Client") :].splitlines()[1:]
    assert len(summary) == (8 if "2:16:2" in line else 1)
    assert done.out.count("  Server: ") == len(summary)
    if "--shape IMAGE" in line:
        assert "'IMAGE', which is no input" in done.message
    else:
        assert done.err == ""
