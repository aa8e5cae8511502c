"""Which exporter takes an object to a platform."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from alipes.errors import NoExporter
from alipes.repository.export.exporter import Exporter
from alipes.repository.platform import Platform

if TYPE_CHECKING:
    from alipes.repository.model import Model

__all__ = ["find_exporter"]

_HOMES: Final[Mapping[Platform, tuple[str, ...]]] = MappingProxyType(
    {
        Platform.ONNX: ("onnx_file", "torch_onnx", "sklearn", "streaming_layer"),
        Platform.SAVEDMODEL: ("keras",),
        Platform.TENSORRT: ("tensorrt",),
        Platform.TORCHSCRIPT: ("torch_script", "streaming_layer"),
        Platform.ENSEMBLE: ("ensemble",),
        Platform.PYTHON: ("python_file", "python_app"),
        Platform.TORCHEXPORT: ("torch_export",),
        Platform.TORCHMODULE: ("torch_module",),
        Platform.SNAPSHOTTER: ("streaming",),
        Platform.AVERAGER: ("streaming",),
    }
)
"""Platform -> the modules with the exporters to it that come with the package. Only these are imported."""


def find_exporter(model_fn: Any, model: Model) -> Exporter:
    """The exporter for an object and a model's platform. Exporters from outside this package come first.

    Raises:
        NoExporter: If there is none.
    """
    for kind in _kinds(model.platform):
        if kind.platform is model.platform and kind.handles(model_fn):
            return kind()
    called = "nothing" if model_fn is None else f"a {type(model_fn).__module__}.{type(model_fn).__qualname__}"
    others = sorted({kind.platform.name for kind in _kinds(*Platform) if kind.handles(model_fn)})
    hint = f"; it can be exported as {', '.join(others)}" if others else ""
    reason = "" if others else _reason(model_fn, model.platform)
    raise NoExporter(f"cannot export {called} as {model.platform.name} for model '{model.name}'{hint}{reason}")


def _reason(model_fn: Any, platform: Platform) -> str:
    if platform is not Platform.PYTHON:
        return ""
    from alipes.repository.export.refusals import why_no_function

    return f": {why_no_function(model_fn)}"


def _kinds(*platforms: Platform) -> list[type[Exporter]]:
    """Every exporter that is known once those to these platforms are."""
    for platform in platforms:
        for home in _HOMES[platform]:
            import_module(f"{__package__}.{home}")
    return sorted(set(_subclasses(Exporter)), key=lambda kind: kind.__module__.startswith("alipes."))


def _subclasses(kind: Any) -> Iterator[type[Exporter]]:
    for one in kind.__subclasses__():
        if hasattr(one, "platform"):
            yield one
        yield from _subclasses(one)
