"""A network that predicts, from the last second of the witnesses, what they put into the strain.

It has the shape of a small DeepClean, and weights that are computed: a bank of filters whose weighted sum is the
coupling. As in every network of windows, the ends of a window are predicted worst, for want of what comes next.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from strain import RATE_HZ, TAPS, WITNESSES, couplings

WINDOW = RATE_HZ
WIDTH = 16
OPSET = 17
IR_VERSION = 8


def network() -> onnx.ModelProto:
    """From `witnesses` `[batch, 2, 1024]` to `noise` `[batch, 1, 1024]`."""
    random = np.random.default_rng(0)
    weights = random.uniform(0.5, 1.5, WIDTH)
    bank = random.standard_normal((WIDTH, WITNESSES, TAPS)) * 0.1
    # Convolutions of networks do not turn their taps around.
    wanted = couplings()[:, ::-1]
    bank += (wanted - np.tensordot(weights, bank, 1))[None] * weights[:, None, None] / (weights**2).sum()
    constants = {"bank": bank.astype(np.float32), "mix": weights[None, :, None].astype(np.float32)}
    pad = TAPS // 2
    nodes = [
        helper.make_node("Conv", ["witnesses", "bank"], ["filtered"], pads=[pad, pad]),
        helper.make_node("Conv", ["filtered", "mix"], ["noise"]),
    ]
    tensor = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "noise",
        [tensor("witnesses", TensorProto.FLOAT, ["batch", WITNESSES, WINDOW])],
        [tensor("noise", TensorProto.FLOAT, ["batch", 1, WINDOW])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)])
