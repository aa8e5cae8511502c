"""Which backends can be named in a model's configuration, and what each needs from this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from alipes.backends.onnxruntime import find_library
from alipes.errors import ModelLoadError

# Backend name -> finds the library that runs its models.
OFFERED: Mapping[str, Callable[[], Path]] = MappingProxyType({"onnxruntime": find_library})

# Names that Triton users know and that this release cannot run: told apart from a misspelt name.
NOT_OFFERED = frozenset(
    ("dali", "ensemble", "fil", "openvino", "python", "pytorch", "tensorflow", "tensorrt", "tensorrtllm", "vllm")
)


def library_of(backend: str) -> Path:
    """The library that runs models of ``backend``.

    Raises:
        ModelLoadError: If this release does not offer the backend, no such backend is known, or its library is not
            installed; the text says which.
    """
    find = OFFERED.get(backend)
    if find is not None:
        return find()
    if backend in NOT_OFFERED:
        offered = ", ".join(sorted(OFFERED))
        raise ModelLoadError(
            f"backend '{backend}' is not offered by this release; offered: {offered}",
            backend=backend,
            code="UNSUPPORTED",
        )
    raise ModelLoadError(
        f"unable to find backend library for backend '{backend}', try specifying runtime on the model configuration.",
        backend=backend,
        code="INVALID_ARG",
    )
