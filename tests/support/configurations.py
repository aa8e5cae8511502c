"""A small model as its configuration and its file describe it, and a backend that only has a name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from alipes.backends.base import Backend, Draft
from alipes.backends.onnxruntime.backend import OnnxruntimeBackend
from alipes.errors import ModelLoadError

from support.described_file import DescribedFile

LIBRARY = Path("/opt/libonnxruntime.so")

# What `alipes._core.OnnxProbe` says of it.
SIGNATURE = {
    "inputs": [{"name": "X", "datatype": "FP32", "shape": [-1, 2]}],
    "outputs": [{"name": "Y", "datatype": "FP32", "shape": [-1, 2]}],
}

COMPLETE = """
backend: "onnxruntime"
max_batch_size: 4
input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
"""


def backend_of(name: str, signature: Mapping[str, Any] = SIGNATURE) -> Callable[[Draft], Backend]:
    """Stands in for `alipes.backends.registry.backend_of` where no engine is needed: every file says ``signature``."""
    if name != "onnxruntime":
        raise ModelLoadError(f"no backend {name}", code="INVALID_ARG")
    return partial(
        OnnxruntimeBackend,
        find_library=lambda: LIBRARY,
        open_file=lambda library, path: DescribedFile(json.dumps(signature)),
    )
