"""Prepares folders of MLflow: `model.mlflow`, or a version's folder that is one itself, with its file `MLmodel`."""

from __future__ import annotations

from typing import ClassVar

from alipes.backends.framework import FrameworkBackend
from alipes.config.framework_parameters import MLFLOW_PARAMETERS
from alipes.config.parameters import Parameter

__all__ = ["MlflowBackend"]


class MlflowBackend(FrameworkBackend):
    """Prepares one version of a model that MLflow has saved."""

    program: ClassVar[str] = "alipes.worker.frameworks.mlflow.program"
    extra: ClassVar[str] = "alipes[mlflow]"
    files: ClassVar[tuple[str, ...]] = ("model.mlflow", "MLmodel")
    parameters: ClassVar[tuple[Parameter, ...]] = MLFLOW_PARAMETERS
