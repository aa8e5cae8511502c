"""ONNX files that are there already, and models of the package onnx."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from alipes.errors import ExportError
from alipes.repository.declare import declare, v2_synonyms
from alipes.repository.export.exporter import Exporter
from alipes.repository.export.request import ExportRequest
from alipes.repository.export.rows import check_rows
from alipes.repository.platform import Platform, conventions
from alipes.repository.tensors import Shape

__all__ = ["OnnxFile", "declare_onnx"]


@dataclass(frozen=True, slots=True)
class _Port:
    shape: Shape
    datatype: str


class OnnxFile(Exporter):
    """Exports an ONNX file unchanged. Names, shapes and datatypes are the file's; declared ones must agree."""

    platform: ClassVar[Platform] = Platform.ONNX

    @classmethod
    def handles(cls, source: Any) -> bool:
        """The path of a file that ends in `.onnx`, or an `onnx.ModelProto`."""
        if isinstance(source, str | Path):
            return Path(source).suffix == ".onnx"
        onnx = sys.modules.get("onnx")
        return onnx is not None and isinstance(source, onnx.ModelProto)

    def export(self, source: Any, request: ExportRequest) -> None:
        """Copy the file, with the files of weights that it names, and declare what it says."""
        file = request.folder / conventions[self.platform]
        if isinstance(source, str | Path):
            try:
                shutil.copyfile(source, file)
            except OSError as error:
                raise ExportError(f"model '{request.config.name}': cannot read {source}: {error.strerror}") from error
            for name in _weights_beside(Path(source)):
                (file.parent / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(Path(source).parent / name, file.parent / name)
        else:
            file.write_bytes(source.SerializeToString())
        declare_onnx(file, request, source if isinstance(source, str | Path) else None)


def declare_onnx(file: Path, request: ExportRequest, origin: str | Path | None = None) -> None:
    """Declare the inputs and outputs of an ONNX file.

    Args:
        file: The file.
        request: The export, whose configuration is changed.
        origin: The file of the user that it is a copy of, for messages.

    Raises:
        ExportError: If the file cannot be run, or differs from what is declared or given.
    """
    onnxruntime: Any = import_module("onnxruntime")
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.log_severity_level = 4
    name = request.config.name
    try:
        session = onnxruntime.InferenceSession(str(file), settings, providers=["CPUExecutionProvider"])
    except Exception as error:
        text = str(error).replace(str(file), str(origin or file.name))
        raise ExportError(f"model '{name}': ONNX Runtime cannot load the file: {text}") from error
    inputs, outputs = _ports(name, session.get_inputs()), _ports(name, session.get_outputs())
    if request.output_names is not None and set(request.output_names) != set(outputs):
        wanted = ", ".join(map(repr, request.output_names))
        raise ExportError(f"model '{name}': output names {wanted}, but the file's are {', '.join(map(repr, outputs))}")
    _check_shapes(request, inputs)
    for side, ports in (("input", inputs), ("output", outputs)):
        types = {port: one.datatype for port, one in ports.items()}
        declare(request.config._proto, side, {port: one.shape for port, one in ports.items()}, types)  # type: ignore[arg-type]
    names = [tensor.name for tensor in request.config.output]
    check_rows(request, lambda arrays: session.run(names, dict(arrays)))


def _ports(model: str, found: Any) -> dict[str, _Port]:
    ports = {}
    for port in found:
        if not port.type.startswith("tensor("):
            raise ExportError(f"model '{model}': '{port.name}' is a {port.type}; only tensors can be sent")
        kind = port.type[len("tensor(") : -1]
        shape = tuple(size if isinstance(size, int) else None for size in port.shape)
        ports[port.name] = _Port(shape, v2_synonyms().get(kind, kind.upper()))
    return ports


def _check_shapes(request: ExportRequest, inputs: Mapping[str, _Port]) -> None:
    """Checks the shapes that a caller declares for a file: they equal the file's, or are refused."""
    shapes = request.input_shapes
    if shapes is None:
        return
    if not isinstance(shapes, Mapping):
        shapes = dict(zip(inputs, shapes, strict=False))
    for name, shape in shapes.items():
        port = inputs.get(name)
        sizes = [None if size in (None, -1) else size for size in shape]
        if port is None or len(sizes) != len(port.shape) or list(port.shape) != sizes:
            has = f"shape {list(port.shape)}" if port is not None else f"no such input, only {', '.join(inputs)}"
            raise ExportError(f"model '{request.config.name}': input '{name}' was given as {sizes}, the file has {has}")


def _weights_beside(file: Path) -> Iterator[str]:
    """Names of the files that hold weights of a model, relative to its own. None without the package onnx."""
    if find_spec("onnx") is None:
        return
    onnx: Any = import_module("onnx")
    try:
        model = onnx.load(str(file), load_external_data=False)
    except Exception:  # no model at all; the engine says so in its words
        return
    seen = set()
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            inside = not Path(entry.value).is_absolute() and ".." not in Path(entry.value).parts
            if entry.key == "location" and entry.value not in seen and inside:
                seen.add(entry.value)
                yield entry.value
