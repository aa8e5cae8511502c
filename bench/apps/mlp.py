import warnings
from pathlib import Path

import torch
from torch.nn import Linear, ReLU, Sequential

warnings.simplefilter("ignore", DeprecationWarning)  # PyTorch advises torch.export for new models


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = Sequential(
            Linear(64, 256), ReLU(), Linear(256, 128), ReLU(), Linear(128, 64), ReLU(), Linear(64, 1)
        )

    def forward(self, x):
        return self.layers(x)


torch.manual_seed(0)
folder = Path("models/mlp/1")
folder.mkdir(parents=True)
torch.jit.save(torch.jit.trace(Mlp().eval(), torch.zeros(1, 64)), folder / "model.pt")
