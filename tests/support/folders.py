"""Model folders for tests that never open the model file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from alipes.backends.base import Backend, Draft
from alipes.backends.onnxruntime.backend import OnnxruntimeBackend

from support.described_file import opening

CONFIG = """
backend: "onnxruntime"
max_batch_size: 4
input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]
"""


def make_model(repository: Path, name: str, versions: Iterable[int], config: str | None = CONFIG) -> Path:
    """Writes a model's folder with an empty file in every version."""
    folder = repository / name
    folder.mkdir(exist_ok=True)
    for version in versions:
        (folder / str(version)).mkdir(exist_ok=True)
        (folder / str(version) / "model.onnx").write_bytes(b"")
    if config is not None:
        (folder / "config.pbtxt").write_text(config)
    return folder


def touch(folder: Path) -> None:
    """Makes a folder look changed, however coarse the file system's clock is."""
    later = folder.stat().st_mtime_ns + 10**9
    os.utime(folder, ns=(later, later))


def backend_of(name: str) -> Callable[[Draft], Backend]:
    """A backend for which every file has the inputs and outputs that `CONFIG` names."""
    return partial(OnnxruntimeBackend, find_library=lambda: Path("/lib.so"), open_file=opening(_signature_of))


def _signature_of(library: str, path: str) -> str:
    ports = [{"name": name, "datatype": "FP32", "shape": [-1, 2]} for name in "XY"]
    return json.dumps({"inputs": ports[:1], "outputs": ports[1:]})
