"""Writes `models/known`: the scores of a sentence with each line of `models/nearest/questions.txt`.

    pip install 'alipes[examples]'
    python examples/questions/catalogue.py

The served ensemble `meaning` makes a vector of each line. They become the matrix of a network of one layer, whose
answers are the cosines. Change the lines and run it again: nothing is trained.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from alipes.serve import serve
from onnx import TensorProto, helper, numpy_helper

FOLDER = Path(__file__).parent / "models"
QUESTIONS = FOLDER / "nearest" / "questions.txt"
#: Models that `meaning` needs.
STEPS = ("tokens", "encoder", "mean", "meaning")

# Read by every ONNX Runtime of the last years: the graph needs nothing newer.
OPSET = 17
IR_VERSION = 8


def vectors(sentences: list[str]) -> npt.NDArray[np.float32]:
    """What `meaning` answers, `[sentences, width]`."""
    with tempfile.TemporaryDirectory() as folder:
        for step in STEPS:
            shutil.copytree(FOLDER / step, Path(folder) / step)
        with serve(folder, wait=True) as server, server.client() as client:
            rows = [client.infer("meaning", {"text": np.array([[one]], np.object_)})["vector"] for one in sentences]
    return np.concatenate(rows)


def scores(known: npt.NDArray[np.float32]) -> onnx.ModelProto:
    """From `vector` FP32 `[batch, width]` to `scores` FP32 `[batch, known]`."""
    tensor = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["vector", "known"], ["scores"])],
        "known",
        [tensor("vector", TensorProto.FLOAT, ["batch", known.shape[1]])],
        [tensor("scores", TensorProto.FLOAT, ["batch", "known"])],
        [numpy_helper.from_array(np.ascontiguousarray(known.T), "known")],
    )
    return helper.make_model(graph, ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)])


def main() -> None:
    """Writes the file."""
    sentences = QUESTIONS.read_text(encoding="utf-8").splitlines()
    onnx.save(scores(vectors(sentences)), FOLDER / "known" / "1" / "model.onnx")
    print(f"wrote the vectors of {len(sentences)} known questions")


if __name__ == "__main__":
    main()
