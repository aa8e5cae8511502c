"""What the rows on sequences and ensembles are asked: a repository of its own, and requests for its models."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper
from tritonclient.grpc import service_pb2

from bench.models.graphs import IR_VERSION, OPSET
from bench.paths import WORK

CHANNELS = 2
STRIDE = 128
WINDOW = 1024
UPDATES = 4
STEP_WIDTH = 16

#: A thousand sequences have a slot each, and what waits of them runs together as the model finds it.
_SEQUENCES = f"""sequence_batching {{ max_sequence_idle_microseconds: 60000000
    oldest {{ max_candidate_sequences: 1000 }}
    state [ {{ input_name: "old" output_name: "new" data_type: TYPE_FP32 dims: [ {STEP_WIDTH} ] }} ] }}"""

#: Model -> its input and its shape in a request of one row.
ASKED: dict[str, tuple[str, tuple[int, ...]]] = {
    "net": ("x", (1, CHANNELS, WINDOW)),
    "stream": ("IN", (1, CHANNELS, STRIDE)),
    "step": ("x", (1, STEP_WIDTH)),
    "steps": ("IN", (1, STEP_WIDTH)),
    "sums": ("x", (1, STEP_WIDTH)),
}


def write(folder: Path) -> Path:
    """Writes the models into a repository: a light one, a snapshotter and an averager around it, steps and sums."""
    _add(folder, "net", _onnx_config((CHANNELS, WINDOW)), _graph("Relu", (CHANNELS, WINDOW)))
    sizes = {"stride_size": STRIDE, "snapshot_size": WINDOW, "channels": f"w:{CHANNELS}"}
    _add(folder, "windows", _streaming("snapshotter", sizes))
    sizes = {"update_size": STRIDE, "num_updates": UPDATES, "kernel_size": WINDOW, "channels": CHANNELS}
    _add(folder, "mean", _streaming("averager", sizes))
    chain = [("windows", "snapshot_update", "w"), ("net", "x", "y"), ("mean", "update", "output_stream")]
    _add(folder, "stream", _ensemble(chain, 0, (1, CHANNELS, STRIDE)))
    _add(folder, "step", _onnx_config((STEP_WIDTH,)), _graph("Identity", (STEP_WIDTH,)))
    for number in (1, 2, 3):
        _add(folder, f"step{number}", _onnx_config((STEP_WIDTH,)), _graph("Identity", (STEP_WIDTH,)))
    chain = [(f"step{number}", "x", "y") for number in (1, 2, 3)]
    _add(folder, "steps", _ensemble(chain, 64, (STEP_WIDTH,)))
    _add(folder, "sums", _onnx_config((STEP_WIDTH,), _SEQUENCES), _sums())
    return folder


def message(model: str) -> Path:
    """A file with a request for a model, which says nothing of sequences."""
    name, shape = ASKED[model]
    values = np.random.default_rng(7).random(shape, np.float32)
    request = service_pb2.ModelInferRequest(model_name=model)
    request.inputs.add(name=name, datatype="FP32", shape=shape)
    request.raw_input_contents.append(values.tobytes())
    path = WORK / "bodies" / f"{model}_sequence.message"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(request.SerializeToString())
    return path


def _add(folder: Path, name: str, config: str, graph: onnx.ModelProto | None = None) -> None:
    version = folder / name / "1"
    version.mkdir(parents=True, exist_ok=True)
    (folder / name / "config.pbtxt").write_text(config)
    if graph is not None:
        onnx.save(graph, version / "model.onnx")


def _graph(operator: str, dims: tuple[int, ...]) -> onnx.ModelProto:
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", *dims]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"])], operator.lower(), ports[:1], ports[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def _sums() -> onnx.ModelProto:
    """``y = new = x + old``."""
    names = ("x", "old", "y", "new")
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", STEP_WIDTH]) for name in names]
    nodes = [helper.make_node("Add", ["x", "old"], ["new"]), helper.make_node("Identity", ["new"], ["y"])]
    graph = helper.make_graph(nodes, "sums", ports[:2], ports[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def _onnx_config(dims: tuple[int, ...], scheduling: str = "dynamic_batching { }") -> str:
    return f"""
backend: "onnxruntime" max_batch_size: 64 {scheduling} instance_group {{ kind: KIND_CPU count: 1 }}
input {{ name: "x" data_type: TYPE_FP32 dims: {list(dims)} }}
output {{ name: "y" data_type: TYPE_FP32 dims: {list(dims)} }}
parameters {{ key: "intra_op_thread_count" value: {{ string_value: "1" }} }}
"""


def _streaming(backend: str, sizes: dict[str, int | str] | dict[str, int]) -> str:
    rows = [f'parameters {{ key: "{key}" value: {{ string_value: "{size}" }} }}' for key, size in sizes.items()]
    return "\n".join([f'backend: "{backend}"', *rows])


def _ensemble(chain: list[tuple[str, str, str]], max_batch_size: int, dims: tuple[int, ...]) -> str:
    tensors = ["IN", *(f"t{number}" for number in range(1, len(chain))), "OUT"]
    steps = [
        f'{{ model_name: "{model}" model_version: -1 input_map {{ key: "{x}" value: "{before}" }} '
        f'output_map {{ key: "{y}" value: "{after}" }} }}'
        for (model, x, y), before, after in zip(chain, tensors[:-1], tensors[1:], strict=True)
    ]
    return f"""
platform: "ensemble" max_batch_size: {max_batch_size}
input {{ name: "IN" data_type: TYPE_FP32 dims: {list(dims)} }}
output {{ name: "OUT" data_type: TYPE_FP32 dims: {list(dims)} }}
ensemble_scheduling {{ step [ {", ".join(steps)} ] }}
"""
