"""ONNX models in the place of recorded Python models, until the Python backend is offered.

They have the names and tensors of the recorded ones, so every scenario that does not depend on what such a model
computes can be played: the index, refused requests, sums and echoes. What does depend on it stands in `later`.

`echo` takes any of its inputs alone, which no ONNX model does. A scenario that sends it one input therefore meets a
model of that datatype alone; the name of that model then stands in its requests and expectations.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import onnx
from onnx import helper

from .scenarios import MODELS, Scenario

# The Python models of each recorded repository that is loaded as a whole.
STAND_INS = {"basic": ("echo", "facts", "optional", "slow")}

_ELEMENTS = {
    "BOOL": onnx.TensorProto.BOOL,
    "UINT8": onnx.TensorProto.UINT8,
    "UINT16": onnx.TensorProto.UINT16,
    "UINT32": onnx.TensorProto.UINT32,
    "UINT64": onnx.TensorProto.UINT64,
    "INT8": onnx.TensorProto.INT8,
    "INT16": onnx.TensorProto.INT16,
    "INT32": onnx.TensorProto.INT32,
    "INT64": onnx.TensorProto.INT64,
    "FP16": onnx.TensorProto.FLOAT16,
    "FP32": onnx.TensorProto.FLOAT,
    "FP64": onnx.TensorProto.DOUBLE,
    "STRING": onnx.TensorProto.STRING,
    "BF16": onnx.TensorProto.BFLOAT16,
}

# Understood by every ONNX Runtime that the project supports.
_OPSET = helper.make_opsetid("", 16)
_IR_VERSION = 8


def install(repository: Path) -> None:
    """Replaces the Python models in a copy of a recorded repository."""
    for name in STAND_INS.get(repository.name, ()):
        recorded = (MODELS / repository.name / name / "config.pbtxt").read_text()
        config = recorded.replace('backend: "python"', 'backend: "onnxruntime"').replace(" optional: true", "")
        _write(repository / name, config, _MODELS[name]())


def install_typed_echoes(repository: Path) -> None:
    """Adds one echo model for each datatype."""
    for datatype in _ELEMENTS:
        name = _typed(datatype)
        tensor = f'{{ name: "%s_{datatype}" data_type: TYPE_{datatype} dims: [ -1 ] }}'
        config = (
            f'name: "{name}" backend: "onnxruntime" max_batch_size: 0 instance_group [{{ kind: KIND_CPU }}]\n'
            f"input [{tensor % 'IN'}]\noutput [{tensor % 'OUT'}]\n"
        )
        _write(repository / name, config, _echo([datatype]))


def with_typed_echo(scenario: Scenario) -> Scenario:
    """The scenario with the echo model of the datatype that it sends; unchanged where it sends none to `echo`."""
    text = json.dumps(scenario.steps)
    sent = re.search(r"\bIN_(\w+)", text)
    if sent is None or not re.search(r"\becho\b", text):
        return scenario
    steps = json.loads(re.sub(r"\becho\b", _typed(sent[1]), text))
    return Scenario(scenario.id, scenario.title, steps)


def _typed(datatype: str) -> str:
    return f"echo_{datatype.lower()}"


def _echo(datatypes: Sequence[str] = tuple(_ELEMENTS)) -> onnx.ModelProto:
    return _model(
        [helper.make_node("Identity", [f"IN_{datatype}"], [f"OUT_{datatype}"]) for datatype in datatypes],
        inputs=[_tensor(f"IN_{datatype}", datatype, [None]) for datatype in datatypes],
        outputs=[_tensor(f"OUT_{datatype}", datatype, [None]) for datatype in datatypes],
    )


def _facts() -> onnx.ModelProto:
    facts = helper.make_node("Constant", [], ["FACTS"], value_strings=["{}"])
    never = helper.make_tensor("never", onnx.TensorProto.INT32, [1], [0])
    return _model(
        [facts, helper.make_node("Constant", [], ["NEVER"], value=never)],
        inputs=[_tensor("X", "INT32", [None])],
        outputs=[_tensor("FACTS", "STRING", [1]), _tensor("NEVER", "INT32", [1])],
    )


def _optional() -> onnx.ModelProto:
    inputs = [_tensor(name, "INT32", [None, 2]) for name in ("A", "B")]
    return _model([helper.make_node("Add", ["A", "B"], ["SUM"])], inputs, outputs=[_tensor("SUM", "INT32", [None, 2])])


def _slow() -> onnx.ModelProto:
    done = helper.make_node("Identity", ["MS"], ["DONE"])
    return _model([done], inputs=[_tensor("MS", "INT32", [1])], outputs=[_tensor("DONE", "INT32", [1])])


_MODELS = {"echo": _echo, "facts": _facts, "optional": _optional, "slow": _slow}


def _tensor(name: str, datatype: str, shape: Sequence[int | None]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, _ELEMENTS[datatype], list(shape))


def _model(
    nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "stand_in", inputs, outputs)
    return helper.make_model(graph, opset_imports=[_OPSET], ir_version=_IR_VERSION)


def _write(folder: Path, config: str, model: onnx.ModelProto) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    version = folder / "1"
    version.mkdir(parents=True)
    (folder / "config.pbtxt").write_text(config)
    onnx.save(model, version / "model.onnx")
