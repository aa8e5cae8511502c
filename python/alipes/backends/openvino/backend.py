"""Prepares OpenVINO models: `model.xml` with its weights in `model.bin`, or `model.onnx`."""

from __future__ import annotations

from typing import ClassVar

from alipes.backends.framework import FrameworkBackend
from alipes.config.framework_parameters import OPENVINO_PARAMETERS
from alipes.config.gpus import GpuUse
from alipes.config.parameters import Parameter

__all__ = ["OpenvinoBackend"]


class OpenvinoBackend(FrameworkBackend):
    """Prepares one version of a model that OpenVINO runs."""

    on_gpu: ClassVar[GpuUse] = GpuUse.NEVER
    program: ClassVar[str] = "alipes.worker.frameworks.openvino"
    extra: ClassVar[str] = "alipes[openvino]"
    files: ClassVar[tuple[str, ...]] = ("model.xml", "model.onnx")
    parameters: ClassVar[tuple[Parameter, ...]] = OPENVINO_PARAMETERS
