"""Prepares models of XGBoost: a worker process opens the file and runs its batches."""

from __future__ import annotations

from typing import ClassVar

from alipes.backends.framework import FrameworkBackend

__all__ = ["XgboostBackend"]


class XgboostBackend(FrameworkBackend):
    """Prepares one version of a model of XGBoost."""

    program: ClassVar[str] = "alipes.worker.frameworks.xgboost"
    extra: ClassVar[str] = "alipes[xgboost]"
    files: ClassVar[tuple[str, ...]] = ("model.ubj", "model.json")
