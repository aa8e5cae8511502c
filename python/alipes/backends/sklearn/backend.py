"""Prepares models of scikit-learn: a worker process opens the file and runs its batches."""

from __future__ import annotations

from typing import ClassVar

from alipes.backends.framework import FrameworkBackend
from alipes.config.gpus import GpuUse

__all__ = ["SklearnBackend"]


class SklearnBackend(FrameworkBackend):
    """Prepares one version of a model of scikit-learn."""

    on_gpu: ClassVar[GpuUse] = GpuUse.NEVER
    program: ClassVar[str] = "alipes.worker.frameworks.sklearn"
    extra: ClassVar[str] = "alipes[sklearn]"
    files: ClassVar[tuple[str, ...]] = ("model.skops", "model.joblib", "model.pkl")
