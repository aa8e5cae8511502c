"""Puts the modules of a model file where its imports find them."""

from __future__ import annotations

import sys

from alipes.worker.current import current

__all__ = ["install"]


def install(version_directory: str = "") -> None:
    """Makes ``import triton_python_backend_utils`` and ``import c_python_backend_utils`` find ours.

    Args:
        version_directory: The folder of the model's version, for `get_model_dir`.
    """
    from alipes.worker.triton import c_python_backend_utils, triton_python_backend_utils

    current.version_directory = version_directory
    sys.modules["triton_python_backend_utils"] = triton_python_backend_utils
    sys.modules["c_python_backend_utils"] = c_python_backend_utils
