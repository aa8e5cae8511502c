"""Streaming models as files: for servers that keep the states of ONNX and TorchScript models, as ours does of ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any, Final, SupportsIndex

from alipes.errors import ConfigError, ExportError
from alipes.repository.platform import Platform
from alipes.repository.streaming.add import add_prepared
from alipes.repository.streaming.sizes import Means, Windows

if TYPE_CHECKING:
    from alipes.repository.export.streaming_layer import StreamingLayer
    from alipes.repository.model import Model
    from alipes.repository.model_repository import ModelRepository

__all__ = ["EXPORTED", "add_streaming_model", "layer_of"]

EXPORTED: Final = (Platform.ONNX, Platform.TORCHSCRIPT)
"""What streaming models can be exported as."""


def add_streaming_model(  # noqa: PLR0913, PLR0917 - scripts call it so
    repository: ModelRepository,
    streaming_layer: Any,
    name: str,
    input_name: str,
    input_shape: Sequence[SupportsIndex],
    state_names: Sequence[str],
    state_shapes: Sequence[Sequence[SupportsIndex]],
    output_names: Sequence[str],
    streams_per_gpu: int = 1,
    *,
    platform: Platform | str = Platform.ONNX,
    datatype: object = "FP32",
    **options: Any,
) -> Model:
    """Add a PyTorch module that keeps states between the requests of a sequence.

    The server keeps them, as tensors `input_<state>` and `output_<state>` that no request sees; they begin as zeros.

    Args:
        repository: Where to add it.
        streaming_layer: A module of the form `forward(input, *states) -> (*outputs, *new states)`.
        name: The model's name. One that is taken gets a number.
        input_name: Name of the input.
        input_shape: Its sizes, all fixed.
        state_names: Names of the states, in the order of the arguments.
        state_shapes: Their sizes, all fixed.
        output_names: Names of the outputs.
        streams_per_gpu: Instances: each has one sequence at a time.
        platform: `ONNX`, or `TORCHSCRIPT` for servers that run it.
        datatype: Element type of input and states.
        options: What `export_version` takes, such as `dynamo` for ONNX.

    Returns:
        The model, exported as version 1.

    Raises:
        ConfigError: If names and shapes do not fit each other.
        ExportError: If the export fails, or a state changes its shape. Nothing is left of the model then.
    """
    from alipes.repository.export.streaming_layer import StreamingLayer

    kind = Platform(platform)
    if kind not in EXPORTED:
        raise ConfigError(f"a layer cannot be exported as {kind.name}; expected ONNX or TORCHSCRIPT", key="platform")
    if len(state_names) != len(state_shapes):
        raise ConfigError(f"{len(state_names)} state names for {len(state_shapes)} state shapes", key="state_shapes")
    states = {state: _sizes(state, shape) for state, shape in zip(state_names, state_shapes, strict=True)}
    if not states or len(states) < len(state_names):
        raise ConfigError(f"a streaming model has states of different names, got {list(state_names)}", key="state")
    declared = (input_name, _sizes(input_name, input_shape))
    layer = StreamingLayer(streaming_layer, declared, states, tuple(output_names), datatype)
    return add_prepared(repository, name, kind, streams_per_gpu, layer, **options)


def _sizes(name: str, shape: Sequence[SupportsIndex]) -> tuple[int, ...]:
    """Sizes as numbers: whole numbers of numpy and torch are such, too."""
    try:
        sizes = tuple(index(size) for size in shape)
    except TypeError:
        sizes = (0,)
    if min(sizes, default=1) < 1:
        raise ConfigError(f"'{name}' has shape {list(shape)}, expected fixed sizes", key="dims")
    return sizes


def layer_of(sizes: Windows | Means, platform: Platform) -> StreamingLayer:
    """The module for a snapshotter or an averager.

    Raises:
        ExportError: If PyTorch is not installed.
    """
    try:
        from alipes.repository.streaming.layers import OnlineAverager, Snapshotter, UnbiasedAverager
    except ImportError as error:
        raise ExportError(str(error)) from error
    from alipes.repository.export.streaming_layer import StreamingLayer

    def named(names: Sequence[str]) -> tuple[str, ...]:
        """Names with positions for scripts, since a server finds a script's outputs by position."""
        return tuple(f"{name}__{at}" if platform is Platform.TORCHSCRIPT else name for at, name in enumerate(names))

    if isinstance(sizes, Windows):
        module = Snapshotter(sizes.snapshot, sizes.stride, sizes.batch, sizes.channels)
        return StreamingLayer(
            module, ("snapshot_update", sizes.update_shape), sizes.states, named(sizes.names), sizes.datatype
        )
    kind = UnbiasedAverager if sizes.unbiased else OnlineAverager
    module = kind(sizes.update, sizes.batch, sizes.updates, sizes.channels)
    return StreamingLayer(
        module, ("update", sizes.update_shape), sizes.states, named(["output_stream"]), sizes.datatype
    )
