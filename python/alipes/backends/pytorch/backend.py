"""Prepares models of PyTorch: TorchScript, archives of `torch.export`, weights beside a `model.py`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final

from alipes.backends.base import Engine
from alipes.backends.framework import FrameworkBackend
from alipes.config.paths import kind_of
from alipes.config.pytorch_parameters import pytorch_notices

__all__ = ["PytorchBackend"]

_CODE: Final = "model.py"


class PytorchBackend(FrameworkBackend):
    """Prepares one version of a model of PyTorch."""

    program: ClassVar[str] = "alipes.worker.frameworks.pytorch.program"
    extra: ClassVar[str] = "alipes[torch]"
    files: ClassVar[tuple[str, ...]] = ("model.pt", "model.pt2", "model.safetensors", _CODE)

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
