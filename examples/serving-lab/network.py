"""The stand-in for the lab's network: the same weights as an ONNX file and as a PyTorch module.

Without layers it averages the channels of the picture and weighs the averages. Layers make it cost what a real network
costs, and keep what it says: they halve the picture twice, carry its three channels along, split by sign so that no
ReLU cuts them, and compute others beside them, which weigh little in the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Floats = npt.NDArray[np.float32]

WIDTH: Final = 64
CARRIED: Final = 6
# Of the channels beside the picture's own, in the scores.
SHARE: Final = 1e-3


@dataclass(frozen=True)
class Network:
    """Scores of the classes from FP32 ``[n, 3, 224, 224]``.

    Attributes:
        weight: ``[classes, 3]``, of the average of each channel.
        bias: ``[classes]``.
        layers: How many convolutions of 64 channels come before the average.
    """

    weight: Floats
    bias: Floats
    layers: int = 0

    def save_onnx(self, file: Path) -> None:
        """Writes it for ONNX Runtime: ``input`` to ``output``, batches of any size."""
        nodes, constants, flowing = [], [], "input"
        for index, kernel in enumerate(self._kernels()):
            constants.append(numpy_helper.from_array(kernel, f"kernel{index}"))
            padding = [kernel.shape[2] // 2] * 4
            nodes += [
                helper.make_node("Conv", [flowing, f"kernel{index}"], [f"conv{index}"], pads=padding),
                helper.make_node("Relu", [f"conv{index}"], [f"relu{index}"]),
            ]
            flowing = f"relu{index}"
            if index < 2:
                pool = helper.make_node("AveragePool", [flowing], [f"pool{index}"], kernel_shape=[2, 2], strides=[2, 2])
                nodes.append(pool)
                flowing = f"pool{index}"
        constants += [numpy_helper.from_array(self._last(), "weight"), numpy_helper.from_array(self.bias, "bias")]
        nodes += [
            helper.make_node("GlobalAveragePool", [flowing], ["average"]),
            helper.make_node("Flatten", ["average"], ["averages"]),
            helper.make_node("Gemm", ["averages", "weight", "bias"], ["output"], transB=1),
        ]
        asked = helper.make_tensor_value_info("input", TensorProto.FLOAT, ["batch", 3, 224, 224])
        given = helper.make_tensor_value_info("output", TensorProto.FLOAT, ["batch", len(self.bias)])
        graph = helper.make_graph(nodes, "food11", [asked], [given], constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)

    def save_torch(self, file: Path) -> None:
        """Writes it as a whole PyTorch module, which is how the lab keeps its own."""
        import torch

        parts: list[torch.nn.Module] = []
        for index, kernel in enumerate(self._kernels()):
            made, taken, side, _ = kernel.shape
            convolution = torch.nn.Conv2d(taken, made, side, padding=side // 2, bias=False)
            convolution.weight = torch.nn.Parameter(torch.from_numpy(kernel))
            parts += [convolution, torch.nn.ReLU()]
            if index < 2:
                parts.append(torch.nn.AvgPool2d(2))
        last = self._last()
        linear = torch.nn.Linear(last.shape[1], last.shape[0])
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(last))
            linear.bias.copy_(torch.from_numpy(self.bias))
        torch.save(torch.nn.Sequential(*parts, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), linear), file)

    def _kernels(self) -> list[Floats]:
        """The convolutions, ``[made, taken, side, side]`` each; the first splits the channels by sign."""
        if self.layers == 0:
            return []
        split = np.concatenate([np.eye(3), -np.eye(3)]).astype(np.float32)[:, :, None, None]
        return [split, *(self._layer(index) for index in range(self.layers))]

    def _layer(self, index: int) -> Floats:
        taken = CARRIED if index == 0 else WIDTH
        kernel = np.random.default_rng(index).normal(0, (2 / taken / 9) ** 0.5, (WIDTH, taken, 3, 3))
        kernel[:CARRIED] = 0
        kernel[range(CARRIED), range(CARRIED), 1, 1] = 1
        return kernel.astype(np.float32)

    def _last(self) -> Floats:
        """The weight of what the last layer made, ``[classes, channels]``."""
        if self.layers == 0:
            return self.weight
        others = np.random.default_rng(0).normal(0, SHARE, (len(self.bias), WIDTH - CARRIED))
        return np.concatenate([self.weight, -self.weight, others], axis=1).astype(np.float32)
