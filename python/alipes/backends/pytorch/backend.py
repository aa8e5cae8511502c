"""Prepares models of PyTorch: TorchScript, archives of `torch.export`, weights beside a `model.py`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final

from alipes.backends.base import Engine
from alipes.backends.framework import FrameworkBackend
from alipes.backends.onnxruntime.library import package_folders
from alipes.config.gpus import GpuUse
from alipes.config.paths import kind_of
from alipes.config.pytorch_parameters import pytorch_notices

__all__ = ["PytorchBackend"]

_CODE: Final = "model.py"

_CUDA: Final = "lib/libtorch_cuda.so"
"""The part for CUDA of a wheel that has one."""


class PytorchBackend(FrameworkBackend):
    """Prepares one version of a model of PyTorch."""

    program: ClassVar[str] = "alipes.worker.frameworks.pytorch.program"
    extra: ClassVar[str] = "alipes[torch]"
    files: ClassVar[tuple[str, ...]] = ("model.pt", "model.pt2", "model.safetensors", _CODE)

    @classmethod
    def gpu_use(cls) -> GpuUse:
        """Any that may, where the installed wheel has a part for GPUs; else those that ask for one, and are told."""
        has_cuda = any((folder / _CUDA).is_file() for folder in package_folders("torch"))
        return GpuUse.PREFERRED if has_cuda else GpuUse.EXPLICIT

    def engine(self) -> Engine:
        """How a worker runs the model, with a notice of each parameter that does nothing."""
        engine, config = super().engine(), self.draft.config
        return replace(engine, notices=(*engine.notices, *pytorch_notices(config.parameters, config.name)))

    def _file(self) -> Path:
        """The model's file; `model.py` where the configuration asks for it as Triton's users do, by `runtime`."""
        config = self.draft.config
        if config.runtime == _CODE and kind_of(self.draft.version_folder / _CODE) == "file":
            config.default_model_filename = _CODE
        return super()._file()
