"""PyTorch to the archives of `torch.export`, for servers that run them."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

from alipes.progress.work import current
from alipes.repository.export.exporter import Exporter
from alipes.repository.export.request import ExportRequest
from alipes.repository.export.torch_check import check_traced, run_like_module
from alipes.repository.export.torch_probes import Written
from alipes.repository.export.torch_source import inference_mode, is_module, trace
from alipes.repository.platform import Platform, conventions

__all__ = ["TorchExport"]


class TorchExport(Exporter):
    """Writes modules as exported programs. Option `strict` goes to `torch.export.export`."""

    platform: ClassVar[Platform] = Platform.TORCHEXPORT
    options: ClassVar[frozenset[str] | None] = frozenset({"strict"})

    @classmethod
    def handles(cls, source: Any) -> bool:
        """Modules; scripts are no source of programs."""
        return is_module(source) and not hasattr(source, "save_to_buffer")

    def export(self, source: Any, request: ExportRequest) -> None:
        """Capture, save, and run what was saved."""
        torch: Any = import_module("torch")
        with inference_mode(source):
            traced = trace(source, request)
            current().step("torch.export")
            program = torch.export.export(
                source, traced.samples, dynamic_shapes=traced.dynamic_shapes(), **request.options
            )
            file = request.folder / conventions[self.platform]
            torch.export.save(program, str(file))
            if request.check:
                check_traced(traced, run_like_module(torch.export.load(str(file)).module()), request, Written.RECORDED)
