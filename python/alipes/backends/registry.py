"""Which backends can be named in a model's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from alipes.backends.base import Backend
from alipes.backends.onnxruntime.backend import OnnxruntimeBackend
from alipes.backends.python.backend import PythonBackend
from alipes.backends.streaming.averager import AveragerBackend
from alipes.backends.streaming.snapshotter import SnapshotterBackend
from alipes.errors import ModelLoadError

# Backend name -> prepares its models.
OFFERED: Mapping[str, type[Backend]] = MappingProxyType(
    {
        "averager": AveragerBackend,
        "onnxruntime": OnnxruntimeBackend,
        "python": PythonBackend,
        "snapshotter": SnapshotterBackend,
    }
)

# Names that Triton users know and that this release cannot run: they are no misspelt names.
NOT_OFFERED = frozenset(("dali", "fil", "openvino", "pytorch", "tensorflow", "tensorrt", "tensorrtllm", "vllm"))


def backend_of(name: str) -> type[Backend]:
    """The backend that a configuration names.

    Raises:
        ModelLoadError: If this release does not offer it, or it is unknown; the text says which.
    """
    found = OFFERED.get(name)
    if found is not None:
        return found
    if name in NOT_OFFERED:
        offered = ", ".join(sorted(OFFERED))
        raise ModelLoadError(
            f"backend '{name}' is not offered by this release; offered: {offered}", backend=name, code="UNSUPPORTED"
        )
    raise ModelLoadError(
        f"unable to find backend library for backend '{name}', try specifying runtime on the model configuration.",
        backend=name,
        code="INVALID_ARG",
    )
