"""A tensor that lies in a region which the server maps, named by its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Self

from alipes.errors import InvalidArgument

if TYPE_CHECKING:
    from alipes.client.signature import TensorSpec

__all__ = ["RegionTensor"]


@dataclass(frozen=True, slots=True)
class RegionTensor:
    """A tensor in a registered region, on a GPU for instance: an input that lies there, or room for an output.

    Attributes:
        region: The region's name at the server.
        shape: The sizes; of an output they are not needed where `byte_size` says how much room there is.
        offset: Bytes of the region in front of it.
        byte_size: Its bytes; by default those of the shape, which tensors of text need to have named.
    """

    region: str
    shape: Sequence[int] | None = None
    offset: int = 0
    byte_size: int | None = None

    def __post_init__(self) -> None:
        """Checks what does not depend on the model.

        Raises:
            InvalidArgument: If the place is none.
        """
        if not isinstance(self.region, str) or not self.region:
            raise InvalidArgument(f"a RegionTensor needs the name of a region, not {self.region!r}")
        numbers = [("offset", self.offset), ("byte_size", self.byte_size or 0)]
        numbers += [("shape", size) for size in (() if self.shape is None else self.shape)]
        for name, number in numbers:
            if not isinstance(number, int) or isinstance(number, bool) or number < 0:
                raise InvalidArgument(f"the {name} of a RegionTensor takes whole numbers from 0 on, not {number!r}")

    def place(self, model: str, spec: TensorSpec) -> dict[str, Any]:
        """The request parameters for a tensor that the model declares.

        Raises:
            InvalidArgument: If nobody knows how many bytes it has.
        """
        return {
            "shared_memory_region": self.region,
            "shared_memory_offset": self.offset,
            "shared_memory_byte_size": self._bytes(model, spec),
        }

    def with_output(self, spec: TensorSpec, shape: Sequence[int]) -> Self:
        """The output that the server has written there."""
        size = self.byte_size if spec.element_bytes is None else prod(shape) * spec.element_bytes
        return type(self)(self.region, tuple(shape), self.offset, size)

    def _bytes(self, model: str, spec: TensorSpec) -> int:
        if self.byte_size is not None:
            return self.byte_size
        if self.shape is None or spec.element_bytes is None:
            what = "its shape or its byte_size" if self.shape is None else f"its byte_size, as {spec.datatype} has any"
            raise InvalidArgument(f"the RegionTensor for '{spec.name}' of model '{model}' needs {what}", model=model)
        return prod(self.shape) * spec.element_bytes
