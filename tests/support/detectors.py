"""A repository that gives two detectors' strain back one stride later: window by window, and averaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from alipes import repository as qv
from onnx import TensorProto, helper

RATE_HZ = 2048
STRIDE = 128
WINDOW = 512
BATCH = RATE_HZ // STRIDE
# Means of two equal numbers are exact, and so are integers of 24 bits.
UPDATES = 2

Strain = npt.NDArray[np.float32]


def write_repository(folder: Path, batch: int = BATCH) -> None:
    """The ensemble `detectors`: windows of two channels, a network that changes nothing, means of what overlaps."""
    repo = qv.ModelRepository(folder)
    network = repo.add("network", platform=qv.Platform.ONNX)
    network.export_version(_unchanged())
    ensemble = repo.add("detectors", platform=qv.Platform.ENSEMBLE)
    ensemble.add_streaming_inputs(network.inputs["strain"], stream_size=STRIDE, batch_size=batch)
    ensemble.add_streaming_output(network.outputs["cleaned"], STRIDE, UPDATES, batch_size=batch)
    wait_long(repo)
    ensemble.export_version(None)


def wait_long(repo: qv.ModelRepository) -> None:
    """Sequences are not forgotten while a busy machine has no time for their clients."""
    for model in repo.models.values():
        if model.platform in (qv.Platform.SNAPSHOTTER, qv.Platform.AVERAGER):
            model.config.sequence_batching.max_sequence_idle_microseconds = 600_000_000
            model.config.write()


def strain(start: int, samples: int) -> Strain:
    """Samples that are all different, of both detectors, from a place on."""
    count = np.arange(start, start + samples, dtype=np.float32)
    return np.stack([count, -count])


def expected(start: int, samples: int) -> Strain:
    """What comes back for them: the stride before; nothing came before the first."""
    earlier = np.arange(start - STRIDE, start - STRIDE + samples, dtype=np.float32)
    return np.stack([np.maximum(earlier, 0), -np.maximum(earlier, 0)])


def _unchanged() -> onnx.ModelProto:
    tensor, shape = helper.make_tensor_value_info, ["batch", 2, WINDOW]
    graph = helper.make_graph(
        [helper.make_node("Identity", ["strain"], ["cleaned"])],
        "unchanged",
        [tensor("strain", TensorProto.FLOAT, shape)],
        [tensor("cleaned", TensorProto.FLOAT, shape)],
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
