"""PyTorch modules whose state a server keeps for each sequence, as ONNX and as TorchScript."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from alipes.config.streaming_states import declare_states, state_input, state_output
from alipes.errors import ExportError
from alipes.repository.declare import datatype_number
from alipes.repository.export.exporter import Exporter
from alipes.repository.export.request import ExportRequest
from alipes.repository.export.torch_onnx import TorchOnnx
from alipes.repository.export.torch_script import TorchScript
from alipes.repository.export.torch_source import is_module
from alipes.repository.platform import Platform
from alipes.repository.tensors import to_dims

__all__ = ["StreamingLayer", "StreamingOnnx", "StreamingScript"]


@dataclass(frozen=True, slots=True)
class StreamingLayer:
    """A module of the form `forward(input, *states) -> (*outputs, *new states)`.

    Attributes:
        module: The module.
        input: Name and shape of the input.
        states: Shapes of the states by name, in the order of the arguments.
        outputs: Names of the outputs.
        datatype: Element type of all of them.
    """

    module: Any
    input: tuple[str, tuple[int, ...]]
    states: Mapping[str, tuple[int, ...]]
    outputs: tuple[str, ...]
    datatype: object = "FP32"

    @property
    def input_names(self) -> list[str]:
        """Names of the states among the inputs."""
        return [state_input(name) for name in self.states]

    def output_names(self, platform: Platform) -> list[str]:
        """Names of the states among the outputs; those of a script carry their position."""
        numbered = platform is Platform.TORCHSCRIPT
        first = len(self.outputs)
        return [state_output(name) + (f"__{first + at}" if numbered else "") for at, name in enumerate(self.states)]


class StreamingExporter(Exporter):
    """Exports the module as an ordinary one, and declares the states to be states."""

    exporter: ClassVar[type[Exporter]]
    options: ClassVar[frozenset[str] | None] = None

    @classmethod
    def handles(cls, source: Any) -> bool:
        """Modules with what is to be known of their states."""
        return isinstance(source, StreamingLayer) and is_module(source.module)

    def export(self, source: StreamingLayer, request: ExportRequest) -> None:
        """Write the module, and take its states out of what requests bring and get."""
        proto = request.config._proto
        proto.ClearField("input")
        proto.ClearField("output")
        name, shape = source.input
        shapes = {name: shape, **dict(zip(source.input_names, source.states.values(), strict=True))}
        states = source.output_names(self.platform)
        extended = replace(
            request,
            input_shapes=shapes,
            output_names=[*source.outputs, *states],
            input_dtypes=dict.fromkeys(shapes, source.datatype),
        )
        self.exporter().run(source.module, extended)
        exported = {tensor.name: tuple(tensor.dims) for tensor in proto.output}
        for state, (wanted, shape) in zip(states, source.states.items(), strict=True):
            if exported[state] != tuple(to_dims(shape)):
                raise ExportError(
                    f"export of model '{proto.name}': state '{wanted}' has shape {list(shape)} and comes out as "
                    f"{list(exported[state])}; a state keeps its shape"
                )
        _take_out(proto.input, source.input_names)
        _take_out(proto.output, states)
        declare_states(proto.sequence_batching, source.states, datatype_number(source.datatype), states)


class StreamingOnnx(StreamingExporter):
    """Writes a version of a streaming model as ONNX."""

    platform: ClassVar[Platform] = Platform.ONNX
    exporter: ClassVar[type[Exporter]] = TorchOnnx


class StreamingScript(StreamingExporter):
    """Writes a version of a streaming model as TorchScript."""

    platform: ClassVar[Platform] = Platform.TORCHSCRIPT
    exporter: ClassVar[type[Exporter]] = TorchScript


def _take_out(tensors: Any, names: list[str]) -> None:
    for index in reversed(range(len(tensors))):
        if tensors[index].name in names:
            del tensors[index]
