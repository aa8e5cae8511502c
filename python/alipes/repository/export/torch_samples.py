"""Tensors to run a PyTorch model on: random ones, or those that the user has given, in the size that is wanted.

Random ones are the same in each run, and leave the generator of the user's process alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from alipes.config.datatypes import config_number, numpy_name, v2_name
from alipes.errors import ExportError
from alipes.repository.tensors import Shape, describe_shape

__all__ = ["SampleSize", "Sampler"]


@dataclass(frozen=True, slots=True)
class SampleSize:
    """How large samples are where shapes leave it open.

    Attributes:
        rows: Size of a variable first axis.
        stretched: Whether other variable axes are twice as long as in the example.
    """

    rows: int
    stretched: bool = False


@dataclass(frozen=True, slots=True)
class Sampler:
    """Draws samples for a model.

    Attributes:
        inputs: Names of the inputs in the order of the model's arguments.
        declared: Shape and datatype of each.
        examples: Tensors of the user, by name.
        device: Where the model is.
    """

    inputs: tuple[str, ...]
    declared: Mapping[str, tuple[Shape, int]]
    examples: Mapping[str, Any]
    device: Any

    def draw(self, size: SampleSize, seed: int) -> tuple[Any, ...]:
        """A tensor for each argument.

        Raises:
            ExportError: If an example does not fit its shape, or one is needed and there is none.
        """
        torch: Any = import_module("torch")
        generator = torch.Generator().manual_seed(seed)
        return tuple(self._draw(name, size, generator) for name in self.inputs)

    def _draw(self, name: str, size: SampleSize, generator: Any) -> Any:
        torch: Any = import_module("torch")
        shape, datatype = self.declared[name]
        kind = _torch_type(v2_name(datatype))
        example = self.examples.get(name)
        if example is not None:
            tensor = torch.as_tensor(example, device=self.device).to(kind)
            _check_example(name, tensor, shape)
            return _resized(tensor, shape, size)
        if None in shape[1:]:
            raise ExportError(
                f"input '{name}' has shape {describe_shape(shape)}: a size beside the batch is variable, so an example "
                f"is needed: examples={{'{name}': tensor}}"
            )
        sizes = [size.rows if one is None else one for one in shape]
        if kind.is_floating_point:
            return torch.randn(sizes, dtype=torch.float32, generator=generator).to(device=self.device, dtype=kind)
        # Small, so that they are good indices too.
        return torch.randint(0, 2, sizes, generator=generator).to(device=self.device, dtype=kind)


def _check_example(name: str, tensor: Any, shape: Shape) -> None:
    have = tuple(tensor.shape)
    fits = len(have) == len(shape) and all(size in (None, one) for size, one in zip(shape, have, strict=True))
    if not fits or 0 in have:
        raise ExportError(f"example of input '{name}' has shape {list(have)}, expected {describe_shape(shape)}")


def _resized(tensor: Any, shape: Shape, size: SampleSize) -> Any:
    torch: Any = import_module("torch")
    for axis, one in enumerate(shape):
        if one is None and axis == 0:
            tensor = torch.cat([tensor] * -(-size.rows // len(tensor)))[: size.rows]
        elif one is None and size.stretched:
            tensor = torch.cat([tensor, tensor], dim=axis)
    return tensor


def _torch_type(datatype: str) -> Any:
    torch: Any = import_module("torch")
    name = "bfloat16" if datatype == "BF16" else numpy_name(config_number(datatype))
    found = None if name is None else getattr(torch, name, None)
    if found is None:
        raise ExportError(f"torch has no tensors of {datatype}")
    return found
