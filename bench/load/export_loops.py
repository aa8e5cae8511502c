"""Exports a small PyTorch model to ONNX again and again, by torch alone or by alipes: run as a program of its own.

It runs in an environment with PyTorch and prints the seconds of each export as JSON.
"""

import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from alipes import repository as qv

SHAPE = (2, 2048)
OPSET = 17


def main() -> None:
    """Runs one loop: `exporter dynamo|tracing exports`."""
    exporter, kind, exports = sys.argv[1:]
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        export = EXPORTERS[exporter](Path(folder), kind == "dynamo")
        times = []
        for _ in range(int(exports)):
            model = _network()
            before = time.perf_counter()
            export(model)
            times.append(time.perf_counter() - before)
    print(json.dumps({"seconds": times}))


def _network() -> Any:
    """What a detector's data is looked at with: 1-D convolutions with strides, and one number at the end."""
    nn: Any = import_module("torch").nn
    layers, channels = [], SHAPE[0]
    for wider in (8, 16, 32, 64):
        layers += [nn.Conv1d(channels, wider, 7, 2, 3), nn.ReLU()]
        channels = wider
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(channels, 1)).eval()


def _alipes(folder: Path, dynamo: bool) -> Callable[[Any], None]:
    repository = qv.ModelRepository(folder / "repository")

    def export(model: Any) -> None:
        entry = repository.add("model", qv.Platform.ONNX, force=True)
        entry.export_version(model, input_shapes={"x": (None, *SHAPE)}, output_names=["y"], dynamo=dynamo)

    return export


def _torch(folder: Path, dynamo: bool) -> Callable[[Any], None]:
    """The same file without a repository, configuration or comparison of numbers."""
    torch: Any = import_module("torch")
    settings: dict[str, Any] = (
        {"dynamic_shapes": ({0: torch.export.Dim.DYNAMIC},), "external_data": False}
        if dynamo
        else {"dynamic_axes": {name: {0: "batch"} for name in ("x", "y")}, "opset_version": OPSET}
    )
    names = {"input_names": ["x"], "output_names": ["y"]}
    write = partial(torch.onnx.export, f=str(folder / "model.onnx"), dynamo=dynamo, verbose=False, **names, **settings)

    def export(model: Any) -> None:
        with torch.no_grad():
            write(model, (torch.randn(2, *SHAPE),))

    return export


EXPORTERS = {"alipes": _alipes, "torch": _torch}


if __name__ == "__main__":
    main()
