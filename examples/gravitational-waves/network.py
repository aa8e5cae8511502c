"""A network that finds inspirals: a bank of matched filters as one convolution, joined over detectors.

Its weights are computed rather than trained, so that the example needs no hours; for what is served, streamed and
watched it makes no difference.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from strain import DETECTORS, HEAVIEST, LIGHTEST, RATE_HZ, Samples, chirp, noise_psd

STRIDE = RATE_HZ // 16
WINDOW = RATE_HZ
# Such a filter gives one number for each sample of the newest stride.
TAPS = WINDOW - STRIDE + 1
MASSES = np.geomspace(LIGHTEST, HEAVIEST, 24)
QUADRATURES = (0.0, np.pi / 2.0)

# Read by every ONNX Runtime of the last years: the graph needs nothing newer.
OPSET = 17
IR_VERSION = 8


def matched_filter(chirp_mass: float, phase: float) -> Samples:
    """A filter whose answer to noise has variance one, and to its own chirp is the chirp's SNR as it ends."""
    length = 4 * RATE_HZ
    padded = np.zeros(length)
    padded[-TAPS:] = chirp(chirp_mass, TAPS, phase)
    weighed = np.fft.irfft(np.fft.rfft(padded) / noise_psd(np.fft.rfftfreq(length, 1 / RATE_HZ)), length)
    # What whitening spreads beyond the window is cut off; the variance is that of what is left.
    taps = weighed[-TAPS:] * np.hanning(2 * TAPS)[:TAPS] ** 0.05
    frequencies = np.fft.rfftfreq(length, 1 / RATE_HZ)
    heard = np.isfinite(noise_psd(frequencies))
    density = np.where(heard, noise_psd(frequencies), noise_psd(frequencies)[heard][0])
    variance = (np.abs(np.fft.rfft(taps, length)) ** 2 * density).sum() * RATE_HZ / length
    return taps / np.sqrt(variance)


def network() -> onnx.ModelProto:
    """From `strain` `[batch, 2, 2048]` to `snr` `[batch, 1]`: how loud an inspiral ended in the newest stride."""
    bank = np.stack([matched_filter(mass, phase) for mass in MASSES for phase in QUADRATURES])
    weights = np.concatenate([bank] * len(DETECTORS))[:, None, :].astype(np.float32)
    parts = [0, len(DETECTORS), len(MASSES), len(QUADRATURES), STRIDE]
    constants = {
        "bank": weights,
        "parts": np.array(parts, np.int64),
        "phases": np.array([3], np.int64),
        "detectors": np.array([1], np.int64),
    }
    make = helper.make_node
    nodes = [
        make("Conv", ["strain", "bank"], ["filtered"], group=len(DETECTORS)),
        make("Mul", ["filtered", "filtered"], ["power"]),
        make("Reshape", ["power", "parts"], ["by_filter"]),
        make("ReduceSum", ["by_filter", "phases"], ["of_both_phases"], keepdims=0),
        # Each detector hears it at a time of its own.
        make("ReduceMax", ["of_both_phases"], ["loudest"], axes=[3], keepdims=0),
        make("ReduceSum", ["loudest", "detectors"], ["together"], keepdims=0),
        make("ReduceMax", ["together"], ["best"], axes=[1], keepdims=1),
        make("Sqrt", ["best"], ["snr"]),
    ]
    tensor = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "matched_filters",
        [tensor("strain", TensorProto.FLOAT, ["batch", len(DETECTORS), WINDOW])],
        [tensor("snr", TensorProto.FLOAT, ["batch", 1])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)])
