"""Prepares models of LightGBM: a worker process opens the file and runs its batches."""

from __future__ import annotations

from typing import ClassVar

from alipes.backends.framework import FrameworkBackend
from alipes.config.gpus import GpuUse

__all__ = ["LightgbmBackend"]


class LightgbmBackend(FrameworkBackend):
    """Prepares one version of a model of LightGBM."""

    on_gpu: ClassVar[GpuUse] = GpuUse.NEVER
    program: ClassVar[str] = "alipes.worker.frameworks.lightgbm"
    extra: ClassVar[str] = "alipes[lightgbm]"
    files: ClassVar[tuple[str, ...]] = ("model.txt",)
