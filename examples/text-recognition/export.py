"""Exports the weights as ONNX, as the tutorial does, into `model_repository`.

The tutorial leaves the names `input.1` and `308` to the exporter of its time, which numbered the tensors of the network
that it had. Here they are named.
"""

from __future__ import annotations

from pathlib import Path

import torch
from utils.model import STRModel

WEIGHTS = "None-ResNet-None-CTC.pth"
OPSET = 18


def export(folder: Path) -> Path:
    """Writes the model's file and gives its path."""
    # Create PyTorch Model Object
    model = STRModel(input_channels=1, output_channels=512, num_classes=37)
    # Load model weights from external file
    state = torch.load(folder / WEIGHTS)
    model.load_state_dict({key.replace("module.", ""): value for key, value in state.items()})
    model.eval()
    # Create ONNX file by tracing model
    file = folder / "model_repository" / "text_recognition" / "1" / "model.onnx"
    torch.onnx.export(
        model,
        (torch.randn(1, 1, 32, 100),),
        file,
        input_names=["input.1"],
        output_names=["308"],
        dynamic_axes={"input.1": [0], "308": [0]},
        opset_version=OPSET,
        external_data=False,
    )
    return file


if __name__ == "__main__":
    print(f"wrote {export(Path(__file__).parent)}")
