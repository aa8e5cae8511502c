"""Trains the digit classifier of `alipes quickstart` and writes its model repository.

The data are scikit-learn's 1,797 scanned handwritten digits, 8x8 pixels of 0 to 16. A fifth is held out before training
and written beside the model, so that whoever serves it can measure the accuracy on scans that the model has never seen.

    pip install scikit-learn onnx
    python examples/digits/train.py --output digits-demo

The network is scikit-learn's own multi-layer perceptron; its weights are written as an ONNX graph by hand, with the
scaling of the pixels in front and the softmax behind, so that a client sends pixels as they were scanned and reads
probabilities.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
import onnx.checker
import onnx.helper
import onnx.numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

Scans: TypeAlias = npt.NDArray[np.uint8]
Labels: TypeAlias = npt.NDArray[np.uint8]

SEED = 7
SIDE = 8
INK = 16.0
HIDDEN_LAYERS = (96, 48)
HELD_OUT = 360
MAX_BATCH_SIZE = 64

# Read by every ONNX Runtime of the last years: the graph needs nothing newer.
OPSET = 13
IR_VERSION = 8

CONFIG = f"""\
name: "digits"
platform: "onnxruntime_onnx"
max_batch_size: {MAX_BATCH_SIZE}
input [
  {{
    name: "scan"
    data_type: TYPE_FP32
    dims: [ {SIDE}, {SIDE} ]
  }}
]
output [
  {{
    name: "probabilities"
    data_type: TYPE_FP32
    dims: [ 10 ]
    label_filename: "labels.txt"
  }}
]
instance_group [
  {{
    kind: KIND_CPU
    count: 1
  }}
]
dynamic_batching {{ }}
"""


class Split(NamedTuple):
    """Scans of shape `[n, 8, 8]` and their digits, before and after the fence."""

    train_scans: Scans
    held_out_scans: Scans
    train_labels: Labels
    held_out_labels: Labels


def split() -> Split:
    """The same scans on either side of the fence each time, every digit equally frequent on both."""
    digits = load_digits()
    scans, labels = digits.images.astype(np.uint8), digits.target.astype(np.uint8)
    return Split(*train_test_split(scans, labels, test_size=HELD_OUT, random_state=SEED, stratify=labels))


def shifted(scans: Scans, down: int, right: int) -> Scans:
    """The scans moved by whole pixels; what leaves the frame is lost, what enters is blank."""
    padded = np.pad(scans, ((0, 0), (1, 1), (1, 1)))
    return padded[:, 1 - down : 1 - down + SIDE, 1 - right : 1 - right + SIDE]


def train(scans: Scans, labels: Labels) -> MLPClassifier:
    """Fits the network on each scan and its four neighbours: a digit stays itself when it moves by a pixel."""
    moves = [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)]
    rows = np.concatenate([shifted(scans, *move) for move in moves]).reshape(-1, SIDE * SIDE) / INK
    network = MLPClassifier(HIDDEN_LAYERS, alpha=1e-3, max_iter=60, early_stopping=True, random_state=SEED)
    return network.fit(rows, np.tile(labels, len(moves)))


def to_onnx(network: MLPClassifier) -> onnx.ModelProto:
    """The network as a graph from `scan` FP32 `[n, 8, 8]` of 0 to 16 to `probabilities` FP32 `[n, 10]`."""
    make = onnx.helper.make_node
    constants = [onnx.numpy_helper.from_array(np.array([INK], np.float32), "ink")]
    nodes = [make("Div", ["scan", "ink"], ["scaled"]), make("Flatten", ["scaled"], ["layer_0"])]
    last = len(network.coefs_)
    for number, (weights, biases) in enumerate(zip(network.coefs_, network.intercepts_, strict=True), start=1):
        weight, bias, summed = f"weight_{number}", f"bias_{number}", f"sum_{number}"
        constants.append(onnx.numpy_helper.from_array(weights.astype(np.float32), weight))
        constants.append(onnx.numpy_helper.from_array(biases.astype(np.float32), bias))
        nodes.append(make("Gemm", [f"layer_{number - 1}", weight, bias], [summed]))
        if number < last:
            nodes.append(make("Relu", [summed], [f"layer_{number}"]))
    nodes.append(make("Softmax", [f"sum_{last}"], ["probabilities"], axis=1))
    tensor = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes,
        "digits",
        [tensor("scan", onnx.TensorProto.FLOAT, ["batch", SIDE, SIDE])],
        [tensor("probabilities", onnx.TensorProto.FLOAT, ["batch", 10])],
        constants,
    )
    model = onnx.helper.make_model(
        graph, producer_name="alipes", opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def write(output: Path, model: onnx.ModelProto, scans: Scans, labels: Labels) -> None:
    """Writes `models`, which has a model repository's shape, the held-out scans, and one of them as a request."""
    folder = output / "models" / "digits"
    (folder / "1").mkdir(parents=True, exist_ok=True)
    (folder / "1" / "model.onnx").write_bytes(model.SerializeToString())
    (folder / "config.pbtxt").write_text(CONFIG, encoding="utf-8")
    (folder / "labels.txt").write_text("".join(f"{digit}\n" for digit in range(10)), encoding="utf-8")
    np.savez_compressed(output / "held_out.npz", scans=scans, labels=labels)
    (output / "request.json").write_text(to_request(scans[0]), encoding="utf-8")


def to_request(scan: Scans) -> str:
    """One scan as the body of a V2 inference request, a line for each line of pixels."""
    rows = ",\n".join(f"      {json.dumps(row)}" for row in scan.tolist())
    tensor = f'"name": "scan", "datatype": "FP32", "shape": [1, {SIDE}, {SIDE}]'
    return f'{{\n  "inputs": [{{\n    {tensor},\n    "data": [\n{rows}\n    ]\n  }}]\n}}\n'


def main() -> None:
    """Trains, writes, and says how well the network reads the scans it was not shown."""
    parser = argparse.ArgumentParser(description="Train the digit classifier and write its model repository.")
    parser.add_argument(
        "--output", type=Path, default=Path("digits-demo"), help="folder to write (default: %(default)s)"
    )
    output: Path = parser.parse_args().output
    data = split()
    network = train(data.train_scans, data.train_labels)
    write(output, to_onnx(network), data.held_out_scans, data.held_out_labels)
    accuracy = network.score(data.held_out_scans.reshape(-1, SIDE * SIDE) / INK, data.held_out_labels)
    print(f"wrote {output}: accuracy on {len(data.held_out_labels)} held-out scans {accuracy:.4f}")


if __name__ == "__main__":
    main()
