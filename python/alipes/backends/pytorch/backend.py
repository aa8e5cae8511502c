"""Prepares models of PyTorch: TorchScript, archives of `torch.export`, weights beside a `model.py`."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

from alipes.backends.framework import FrameworkBackend
from alipes.config.paths import kind_of

__all__ = ["PytorchBackend"]

_CODE: Final = "model.py"


class PytorchBackend(FrameworkBackend):
    """Prepares one version of a model of PyTorch."""

    program: ClassVar[str] = "alipes.worker.frameworks.pytorch.program"
    extra: ClassVar[str] = "alipes[torch]"
    files: ClassVar[tuple[str, ...]] = ("model.pt", "model.pt2", "model.safetensors", _CODE)

    def _file(self) -> Path:
        """The model's file; `model.py` where the configuration asks for it as Triton's users do, by `runtime`."""
        config = self.draft.config
        if config.runtime == _CODE and kind_of(self.draft.version_folder / _CODE) == "file":
            config.default_model_filename = _CODE
        return super()._file()
