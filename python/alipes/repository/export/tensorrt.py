"""TensorRT plans, which are built on the GPU that they will run on."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final

from alipes.errors import ExportError
from alipes.repository.export.exporter import Exporter
from alipes.repository.export.onnx_file import OnnxFile, declare_onnx
from alipes.repository.export.request import ExportRequest
from alipes.repository.export.torch_onnx import TorchOnnx
from alipes.repository.export.torch_source import is_module
from alipes.repository.model import Model
from alipes.repository.platform import Platform, conventions
from alipes.repository.tensors import Shape, describe_shape

__all__ = ["TensorRT", "copy_newest", "profile_sizes"]

_WORKSPACE_BYTES: Final = 1 << 28
_LARGEST_BATCH: Final = 64
"""The largest batch of a plan for a model that says no `max_batch_size`."""


class TensorRT(Exporter):
    """Writes PyTorch models, ONNX files and ONNX models of a repository as plans.

    Options: `use_fp16` lets the plan compute in half precision; `largest_batch` is the largest batch that it takes,
    where the configuration has no `max_batch_size`. Plans belong to the kind of GPU and the version of TensorRT that
    built them.
    """

    platform: ClassVar[Platform] = Platform.TENSORRT
    options: ClassVar[frozenset[str] | None] = frozenset({"use_fp16", "largest_batch", "endpoint"})

    @classmethod
    def handles(cls, source: Any) -> bool:
        """Modules, ONNX files, and models of a repository."""
        is_model = isinstance(source, Model) and source.platform is Platform.ONNX
        return is_model or is_module(source) or OnnxFile.handles(source)

    def export(self, source: Any, request: ExportRequest) -> None:
        """Write ONNX first, and build a plan of it."""
        name = request.config.name
        if request.options.get("endpoint") is not None:
            raise ExportError(
                f"model '{name}': an endpoint builds no plans, because it would have to unpickle what clients send; "
                "export on the machine with the GPU"
            )
        tensorrt = _tensorrt(name)
        plain = dataclasses.replace(request, options={})
        onnx = request.folder / conventions[Platform.ONNX]
        if isinstance(source, Model):
            copy_newest(source, onnx)
            declare_onnx(onnx, plain)
        else:
            (TorchOnnx() if is_module(source) else OnnxFile()).export(source, plain)
        plan = _build(tensorrt, onnx, request)
        for left in request.folder.iterdir():
            left.unlink()
        (request.folder / conventions[self.platform]).write_bytes(plan)


def profile_sizes(shape: Shape, batch: int) -> tuple[list[int], list[int], list[int]]:
    """The smallest, the usual and the largest sizes of an input, for the one profile that covers all inputs.

    Raises:
        ExportError: If a size beside the batch is variable.
    """
    if None in shape[1:]:
        raise ExportError(f"an input has shape {describe_shape(shape)}: plans are built for a variable batch only")
    fixed = [size for size in shape[1:] if size is not None]
    if shape[:1] != (None,):
        sizes = [size for size in shape if size is not None]
        return sizes, sizes, sizes
    return [1, *fixed], [max(1, batch // 2), *fixed], [batch, *fixed]


def _tensorrt(name: str) -> Any:
    """The package, on a machine where it can build.

    Raises:
        ExportError: If it is not installed, or there is no GPU.
    """
    if find_spec("tensorrt") is None:
        raise ExportError(
            f"model '{name}': a plan is built by the package tensorrt, which is not installed; export it as "
            "Platform.ONNX, which runs everywhere"
        )
    tensorrt: Any = import_module("tensorrt")
    if not list(Path("/dev").glob("nvidia[0-9]*")):
        raise ExportError(
            f"model '{name}': a plan is built on the GPU that it will run on, and this machine has none; export it as "
            "Platform.ONNX, which runs everywhere"
        )
    return tensorrt


def copy_newest(model: Model, file: Path) -> None:
    """Copy the ONNX file of a model's newest version, with the files of weights beside it.

    Raises:
        ExportError: If there is no version yet.
    """
    versions = model.versions
    if not versions:
        raise ExportError(f"model '{model.name}' has no version yet to build a plan of")
    folder = f"{model.name}/{versions[-1]}"
    for name in model.fs.list(folder):
        content = model.fs.read(f"{folder}/{name}", "rb")
        assert isinstance(content, bytes)
        file.with_name(name).write_bytes(content)


def _build(tensorrt: Any, onnx: Path, request: ExportRequest) -> bytes:
    name = request.config.name
    logger = tensorrt.Logger(tensorrt.Logger.INFO if request.verbose else tensorrt.Logger.ERROR)
    builder = tensorrt.Builder(logger)
    # Before TensorRT 10 a network needed a flag to have its batch as an axis like others.
    explicit = getattr(tensorrt.NetworkDefinitionCreationFlag, "EXPLICIT_BATCH", None)
    network = builder.create_network(0 if explicit is None else 1 << int(explicit))
    parser = tensorrt.OnnxParser(network, logger)
    if not parser.parse(onnx.read_bytes()):
        errors = "; ".join(str(parser.get_error(index)) for index in range(parser.num_errors))
        raise ExportError(f"model '{name}': TensorRT cannot read the ONNX file: {errors}")
    settings = builder.create_builder_config()
    settings.set_memory_pool_limit(tensorrt.MemoryPoolType.WORKSPACE, _WORKSPACE_BYTES)
    if request.options.get("use_fp16"):
        settings.set_flag(tensorrt.BuilderFlag.FP16)
    batch = request.config.max_batch_size or int(request.options.get("largest_batch", _LARGEST_BATCH))
    settings.add_optimization_profile(_profile(builder, network, batch))
    plan = builder.build_serialized_network(network, settings)
    if plan is None:
        raise ExportError(f"model '{name}': TensorRT built no plan; verbose=1 shows its messages")
    return bytes(plan)


def _profile(builder: Any, network: Any, batch: int) -> Any:
    profile = builder.create_optimization_profile()
    for index in range(network.num_inputs):
        tensor = network.get_input(index)
        sizes: Sequence[int] = list(tensor.shape)
        shape = tuple(None if size == -1 else int(size) for size in sizes)
        profile.set_shape(tensor.name, *profile_sizes(shape, batch))
    return profile
