"""Saves the bench's convolution net for PyTorch, as TorchScript and as an exported program: ONNX-FILE FOLDER."""

import sys
import warnings
from pathlib import Path

import onnx
import torch
from onnx import numpy_helper


class Convolution(torch.nn.Module):
    """The graph of `bench.models.graphs.conv`, with its weights."""

    def __init__(self, model: onnx.ModelProto) -> None:
        """Takes weights and strides from the file."""
        super().__init__()
        weights = {tensor.name: numpy_helper.to_array(tensor).copy() for tensor in model.graph.initializer}
        self.layers = torch.nn.Sequential()
        for node in model.graph.node:
            if node.op_type == "Conv":
                (stride,) = {attribute.ints[0] for attribute in node.attribute if attribute.name == "strides"}
                kernel = torch.from_numpy(weights[node.input[1]])
                layer = torch.nn.Conv2d(kernel.shape[1], kernel.shape[0], 3, stride, padding=1, bias=False)
                layer.weight = torch.nn.Parameter(kernel)
                self.layers.extend([layer, torch.nn.ReLU()])
        self.last = torch.nn.Parameter(torch.from_numpy(weights["w"]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """From pictures to ten numbers each."""
        return self.layers(x).mean(dim=(2, 3)) @ self.last


def main() -> None:
    """Writes both files."""
    warnings.simplefilter("ignore", DeprecationWarning)  # PyTorch advises torch.export for new models
    source, folder = sys.argv[1], Path(sys.argv[2])
    module = Convolution(onnx.load(source)).eval()
    example = torch.zeros(2, 3, 32, 32)
    with torch.inference_mode():
        torch.jit.save(torch.jit.trace(module, example), folder / "model.pt")
    batch = torch.export.Dim("batch", min=1, max=64)
    torch.export.save(torch.export.export(module, (example,), dynamic_shapes={"x": {0: batch}}), folder / "model.pt2")


if __name__ == "__main__":
    main()
