"""Which exporter takes an object to a platform."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from alipes.errors import NoExporter
from alipes.repository.export.exporter import Exporter

if TYPE_CHECKING:
    from alipes.repository.model import Model

__all__ = ["find_exporter"]

_HOMES: Final = (
    "ensemble",
    "onnx_file",
    "torch_onnx",
    "torch_script",
    "torch_export",
    "sklearn",
    "keras",
    "tensorrt",
    "python_file",
    "python_function",
    "streaming",
    "streaming_layer",
)
"""Modules with the exporters that come with the package."""


def find_exporter(source: Any, model: Model) -> Exporter:
    """The exporter for an object and a model's platform. Those that others have defined are asked first.

    Raises:
        NoExporter: If there is none.
    """
    for home in _HOMES:
        import_module(f"{__package__}.{home}")
    kinds = sorted(set(_subclasses(Exporter)), key=lambda kind: kind.__module__.startswith("alipes."))
    for kind in kinds:
        if kind.platform is model.platform and kind.handles(source):
            return kind()
    called = "nothing" if source is None else f"a {type(source).__module__}.{type(source).__qualname__}"
    others = sorted({kind.platform.name for kind in kinds if kind.handles(source)})
    hint = f"; it can be exported as {', '.join(others)}" if others else ""
    raise NoExporter(f"cannot export {called} as {model.platform.name} for model '{model.name}'{hint}")


def _subclasses(kind: Any) -> Iterator[type[Exporter]]:
    for one in kind.__subclasses__():
        if hasattr(one, "platform"):
            yield one
        yield from _subclasses(one)
