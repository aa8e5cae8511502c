"""PyTorch to ONNX, by either of torch's exporters."""

from __future__ import annotations

import logging
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final

from alipes.errors import ExportError
from alipes.progress.work import current
from alipes.repository.export.compare import OnnxRun
from alipes.repository.export.exporter import Exporter
from alipes.repository.export.request import ExportRequest
from alipes.repository.export.torch_check import check_traced
from alipes.repository.export.torch_probes import Written
from alipes.repository.export.torch_source import Traced, inference_mode, is_module, to_numpy, trace
from alipes.repository.platform import Platform, conventions

__all__ = ["TorchOnnx"]

_log = logging.getLogger(__name__)

_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")

_OPSET: Final = 17
"""What the tracing exporter writes where nothing else is asked for; every ONNX Runtime in use reads it."""


class TorchOnnx(Exporter):
    """Writes `torch.nn.Module` and `torch.jit.ScriptModule` as ONNX.

    Option `dynamo`: True for the exporter on `torch.export`, which refuses what it cannot capture and needs the package
    onnxscript; False for the one that traces, which records what happened to the samples. Left out, the former is tried
    where it is installed, then the latter. All other options go to `torch.onnx.export`.
    """

    platform: ClassVar[Platform] = Platform.ONNX
    options: ClassVar[frozenset[str] | None] = None

    @classmethod
    def handles(cls, source: Any) -> bool:
        """Modules, scripted or not."""
        return is_module(source)

    def export(self, source: Any, request: ExportRequest) -> None:
        """Trace, write, and run what was written."""
        options = dict(request.options)
        wanted = options.pop("dynamo", None)
        with inference_mode(source):
            traced = trace(source, request)
            file = request.folder / conventions[self.platform]
            if wanted is None:
                _export_by_either(traced, file, request, options)
            else:
                _EXPORTERS[bool(wanted)](traced, file, request, options)
            if request.check:
                _check(traced, file, request)


def _export_by_either(traced: Traced, file: Path, request: ExportRequest, options: dict[str, Any]) -> None:
    torch: Any = import_module("torch")
    if find_spec("onnxscript") is None or isinstance(traced.module, torch.jit.ScriptModule):
        _export_by_tracing(traced, file, request, options)
        return
    try:
        _export_by_dynamo(traced, file, request, options)
    except Exception as error:
        _log.warning(
            "model '%s': torch.export cannot capture it (%s); it is traced instead, which keeps the branches that the "
            "samples took",
            request.config.name,
            _reason(error),
        )
        for left in request.folder.iterdir():
            left.unlink()
        _export_by_tracing(traced, file, request, options)


def _reason(error: BaseException) -> str:
    """What stood at the beginning of the chain: torch wraps it in advice of several pages."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line for line in _COLOUR.sub("", str(error)).splitlines() if line.strip()]
    return lines[0].strip() if lines else type(error).__name__


def _export_by_tracing(traced: Traced, file: Path, request: ExportRequest, options: dict[str, Any]) -> None:
    axes = {
        **{name: _variable(shape) for name, shape in traced.shapes.items()},
        **{tensor.name: _variable(_model_shape(request, tensor)) for tensor in request.config.output},
    }
    settings = {
        "opset_version": _OPSET,
        "dynamic_axes": {name: found for name, found in axes.items() if found},
        "verbose": request.verbose,
        **options,
        "dynamo": False,
    }
    _call(traced, file, settings)


def _export_by_dynamo(traced: Traced, file: Path, request: ExportRequest, options: dict[str, Any]) -> None:
    if find_spec("onnxscript") is None:
        raise ExportError("dynamo=True needs the package onnxscript: pip install 'alipes[torch]'")
    settings = {
        "dynamic_shapes": traced.dynamic_shapes(),
        "verbose": request.verbose,
        # One file, where the format allows for it: 2 GiB are protobuf's limit.
        "external_data": _bytes(traced.module) > 1 << 30,
        **options,
        "dynamo": True,
    }
    _call(traced, file, settings)


_EXPORTERS: Final = {False: _export_by_tracing, True: _export_by_dynamo}


def _call(traced: Traced, file: Path, settings: dict[str, Any]) -> None:
    current().step("torch.onnx.export")
    torch: Any = import_module("torch")
    weights = (*traced.module.named_parameters(), *traced.module.named_buffers())
    name, kind = next(((name, one.dtype) for name, one in weights if one.is_complex()), ("", None))
    if kind is not None and not settings["dynamo"]:
        raise ExportError(
            f"its '{name}' is {kind}, which the tracing exporter cannot write: keep real and imaginary parts, as "
            "torch.view_as_real gives them, or export it with dynamo=True"
        )
    torch.onnx.export(
        traced.module,
        traced.samples,
        str(file),
        input_names=list(traced.inputs),
        output_names=list(traced.outputs),
        **settings,
    )


def _check(traced: Traced, file: Path, request: ExportRequest) -> None:
    torch: Any = import_module("torch")
    if any(one.dtype == torch.bfloat16 for one in (*traced.samples, *traced.results)):
        _log.info(
            "model '%s' has bfloat16 tensors, which numpy lacks: its numbers are not compared", request.config.name
        )
        return
    run = OnnxRun(file, traced.outputs)
    unused = [name for name in traced.inputs if name not in run.inputs]
    if unused:
        raise ExportError(
            f"export of model '{request.config.name}': the file has no input '{unused[0]}', since forward does not use "
            "it, or not for the sample that it was traced with; leave it out, or make sure that every call uses it"
        )

    def run_samples(samples: tuple[Any, ...]) -> list[Any]:
        return run(dict(zip(traced.inputs, map(to_numpy, samples), strict=True)))

    check_traced(traced, run_samples, request, Written.TRANSLATED)


def _model_shape(request: ExportRequest, tensor: Any) -> Any:
    from alipes.repository.tensors import model_shape

    return model_shape(request.config._proto, tensor)


def _variable(shape: Any) -> dict[int, str]:
    return {axis: "batch" if axis == 0 else f"axis_{axis}" for axis, size in enumerate(shape) if size is None}


def _bytes(module: Any) -> int:
    return sum(one.numel() * one.element_size() for one in module.parameters())
