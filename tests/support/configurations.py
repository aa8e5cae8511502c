"""A small model as its configuration and its file describe it, and a backend that only has a name."""

from __future__ import annotations

from pathlib import Path

from alipes.errors import ModelLoadError

LIBRARY = Path("/opt/libonnxruntime.so")

# What `alipes._core.describe_onnx` answers for it.
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


def library_of(backend: str) -> Path:
    """Stands in for `alipes.backends.registry.library_of` where no engine is needed."""
    if backend != "onnxruntime":
        raise ModelLoadError(f"no backend {backend}", code="INVALID_ARG")
    return LIBRARY
