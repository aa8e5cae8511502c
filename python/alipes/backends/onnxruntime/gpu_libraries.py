"""Finds what the providers for GPUs need in NVIDIA's wheels: they look for it by name, where the system has none.

Source: `onnxruntime.preload_dlls`, which opens the same libraries for programs in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from alipes.backends.onnxruntime.library import package_folders

__all__ = ["CUDA_PROVIDER", "find_gpu_libraries", "has_cuda_provider"]

CUDA_PROVIDER: Final = "libonnxruntime_providers_cuda.so"
"""The part for CUDA of a wheel that has one; it lies beside the library."""

_NAMES: Final = ("nvJitLink", "nvrtc", "cudart", "cublasLt", "cublas", "curand", "cufft", "cudnn")
"""Libraries of `onnxruntime-gpu[cuda,cudnn]`, each after those that it needs."""

_TENSORRT: Final = ("nvinfer", "nvinfer_plugin", "nvonnxparser")
"""Libraries of `tensorrt`, in the same order."""


def has_cuda_provider(library: Path) -> bool:
    """Whether the wheel of this library can use GPUs."""
    return library.with_name(CUDA_PROVIDER).is_file()


def find_gpu_libraries(folders: Callable[[str], list[Path]] = package_folders) -> list[Path]:
    """The libraries for GPUs that are installed as wheels, each after those that it needs; absolute.

    Args:
        folders: The folders of a package that is installed.
    """
    nvidia = [found for folder in folders("nvidia") for found in sorted(folder.glob("*/lib"))]
    tensorrt = folders("tensorrt_libs")
    return [*_of(nvidia, _NAMES), *_of(tensorrt, _TENSORRT)]


def _of(folders: list[Path], names: tuple[str, ...]) -> list[Path]:
    return [file.absolute() for name in names for folder in folders for file in sorted(folder.glob(f"lib{name}.so.*"))]
