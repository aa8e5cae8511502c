"""The inputs and outputs of models, as ensembles see them: with the batch axis, and None for any size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from alipes.config.datatypes import v2_name
from alipes.config.schema import ModelConfig as Message

if TYPE_CHECKING:
    from alipes.repository.model import Model

__all__ = [
    "ANY",
    "ExposedTensor",
    "Shape",
    "describe_shape",
    "exposed",
    "exposed_shape",
    "model_shape",
    "put_shape",
    "to_dims",
]

ANY: Final = -1
"""A size that requests choose, as configurations write it."""

Shape: TypeAlias = tuple[int | None, ...]
"""Sizes with the batch axis, where there is one; None for a size that requests choose."""


@dataclass(frozen=True)
class ExposedTensor:
    """An input or output of a model in a repository.

    Attributes:
        model: Whose it is.
        name: Its name there.
        shape: Its sizes with the batch axis; None for a size that requests choose.
        datatype: Its element type, as the V2 protocol names it: `FP32`, `INT64`, `BYTES`.
    """

    model: Model
    name: str
    shape: Shape
    datatype: str = "FP32"

    def __str__(self) -> str:
        """`model.name`, as messages about ensembles name the ends of an edge."""
        return f"{self.model.name}.{self.name}"


def exposed_shape(config: Message, tensor: Message) -> Shape:
    """The sizes that requests bring, with the batch axis that a batching model's declaration leaves out."""
    return _with_batch(config, tensor.dims)


def model_shape(config: Message, tensor: Message) -> Shape:
    """The sizes that the model itself sees: those of the reshape, where there is one."""
    return _with_batch(config, tensor.reshape.shape if tensor.HasField("reshape") else tensor.dims)


def put_shape(config: Message, tensor: Message, shape: Shape) -> None:
    """Write what the model sees into a declaration: without the batch axis, where the model batches.

    The format has no empty `dims`. What has no axis but the batch is one element on the wire, and none for the model.
    """
    dims = to_dims(shape[1:] if config.max_batch_size > 0 else shape)
    tensor.ClearField("reshape")
    tensor.dims[:] = dims or [1]
    if not dims and config.max_batch_size > 0:
        tensor.reshape.SetInParent()


def _with_batch(config: Message, sizes: Iterable[int]) -> Shape:
    dims = tuple(None if size == ANY else int(size) for size in sizes)
    return (None, *dims) if config.max_batch_size > 0 else dims


def exposed(model: Model, config: Message, tensor: Message) -> ExposedTensor:
    """A declared tensor as part of its model."""
    return ExposedTensor(model, tensor.name, exposed_shape(config, tensor), v2_name(tensor.data_type))


def to_dims(shape: Iterable[int | None]) -> list[int]:
    """Sizes as configurations write them; None and 0 stand for any size."""
    return [int(size) if size else ANY for size in shape]


def describe_shape(shape: Iterable[int | None]) -> str:
    """Sizes for a message: `[None, 2, 8192]`."""
    return f"[{', '.join(str(None if size in (None, ANY) else size) for size in shape)}]"
