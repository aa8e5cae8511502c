"""Prepares models of CatBoost: a worker process opens the file and runs its batches."""

from __future__ import annotations

from typing import ClassVar

from alipes.backends.framework import FrameworkBackend
from alipes.config.gpus import GpuUse

__all__ = ["CatboostBackend"]


class CatboostBackend(FrameworkBackend):
    """Prepares one version of a model of CatBoost."""

    on_gpu: ClassVar[GpuUse] = GpuUse.NEVER
    program: ClassVar[str] = "alipes.worker.frameworks.catboost"
    extra: ClassVar[str] = "alipes[catboost]"
    files: ClassVar[tuple[str, ...]] = ("model.cbm",)
