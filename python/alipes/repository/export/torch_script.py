"""PyTorch to TorchScript, for servers that run it."""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar, Final

from alipes.progress.work import current
from alipes.repository.export.exporter import Exporter
from alipes.repository.export.request import ExportRequest
from alipes.repository.export.torch_check import check_traced, run_like_module
from alipes.repository.export.torch_probes import Written
from alipes.repository.export.torch_source import argument_names, inference_mode, is_module, trace
from alipes.repository.platform import Platform, conventions

__all__ = ["TorchScript"]

_log = logging.getLogger(__name__)
_POSITIONAL: Final = re.compile(r".+__\d+")


class TorchScript(Exporter):
    """Writes modules as TorchScript: traced, or as they are where they are scripts already."""

    platform: ClassVar[Platform] = Platform.TORCHSCRIPT

    @classmethod
    def handles(cls, source: Any) -> bool:
        """Modules, scripted or not."""
        return is_module(source)

    def export(self, source: Any, request: ExportRequest) -> None:
        """Trace, save, and run what was saved."""
        torch: Any = import_module("torch")
        arguments, _ = argument_names(source)
        shapes = request.input_shapes
        if shapes is not None and not isinstance(shapes, Mapping) and not request.config.input:
            # A server binds inputs to arguments by these names.
            request = dataclasses.replace(request, input_shapes=dict(zip(arguments, shapes, strict=False)))
        with inference_mode(source):
            traced = trace(source, request, default_output="OUTPUT__{}")
            current().step("torch.jit.trace")
            is_script = isinstance(source, torch.jit.ScriptModule)
            script = source if is_script else torch.jit.trace(source, traced.samples, check_trace=False)
            file = request.folder / conventions[self.platform]
            torch.jit.save(script, str(file))
            if request.check:
                check_traced(traced, run_like_module(torch.jit.load(str(file))), request, Written.RECORDED)
        _warn_of_names(request, traced.inputs, arguments, traced.outputs)


def _warn_of_names(
    request: ExportRequest, inputs: Sequence[str], arguments: Sequence[str], outputs: Sequence[str]
) -> None:
    """A script has no names of its own, so servers read positions out of ours."""
    by_argument = set(inputs) <= set(arguments)
    odd = [name for name in inputs if not by_argument and not _POSITIONAL.fullmatch(name)]
    odd += [name for name in outputs if not _POSITIONAL.fullmatch(name)]
    if odd:
        _log.warning(
            "model '%s': '%s' is no name that NVIDIA Triton finds in TorchScript: inputs are called like the arguments "
            "of forward or INPUT__0, outputs OUTPUT__0",
            request.config.name,
            odd[0],
        )
