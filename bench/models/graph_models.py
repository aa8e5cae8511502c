"""Three small models of which each takes what the one before it gives, and graphs that connect them."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from bench.paths import WORK

#: What each multiplies its input by.
FACTORS = {"first": 2.0, "second": 3.0, "third": 0.5}
COLUMNS = 8


def written() -> Path:
    """The folder with the models."""
    folder = WORK / f"graph-{hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]}" / "models"
    for name, factor in FACTORS.items():
        file = folder / name / "1" / "model.onnx"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(_times(factor).SerializeToString())
    return folder


def chain(address: str) -> dict[str, Any]:
    """The specification of a graph of three steps, which are models of a server.

    Args:
        address: Host and port of the server; empty where the graph's own server has the models.
    """

    def target(name: str) -> Mapping[str, Any]:
        if not address:
            return {"serviceName": name}
        return {"serviceUrl": f"http://{address}/v1/models/{name}:predict"}

    first, *rest = FACTORS
    steps = [
        target(first),
        *({**target(name), "data": "$response", "mapPredictionsToInstances": True} for name in rest),
    ]
    return {"nodes": {"root": {"routerType": "Sequence", "steps": steps}}}


def chain_file() -> Path:
    """The file of that graph, of the server's own models."""
    file = written().parent / "graph.json"
    head = {"apiVersion": "serving.kserve.io/v1alpha1", "kind": "InferenceGraph", "metadata": {"name": "chain"}}
    file.write_text(json.dumps({**head, "spec": chain("")}))
    return file


def _times(factor: float) -> onnx.ModelProto:
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", COLUMNS]) for name in ("X", "Y")]
    constant = numpy_helper.from_array(np.float32(factor), "factor")
    graph = helper.make_graph(
        [helper.make_node("Mul", ["X", "factor"], ["Y"])], "times", ports[:1], ports[1:], [constant]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
