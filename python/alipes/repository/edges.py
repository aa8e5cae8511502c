"""An edge of an ensemble: whether what one model gives fits what another takes."""

from __future__ import annotations

from alipes.errors import ConfigError
from alipes.repository.tensors import ExposedTensor, Shape, describe_shape

__all__ = ["check_edge", "narrow"]


def check_edge(ensemble: str, outbound: ExposedTensor, inbound: ExposedTensor) -> None:
    """Check datatypes and shapes at both ends; None fits any size.

    Raises:
        ConfigError: With the edge and what differs.
    """
    edge = f"in ensemble '{ensemble}': {outbound} -> {inbound}"
    if outbound.datatype != inbound.datatype:
        raise _error(f"{edge}: {outbound.datatype} on the one side, {inbound.datatype} on the other")
    shapes = f"shapes {describe_shape(outbound.shape)} and {describe_shape(inbound.shape)}"
    if len(outbound.shape) != len(inbound.shape):
        raise _error(f"{edge}: {shapes} have {len(outbound.shape)} and {len(inbound.shape)} axes")
    for axis, (left, right) in enumerate(zip(outbound.shape, inbound.shape, strict=True)):
        if left is not None and right is not None and left != right:
            raise _error(f"{edge}: {shapes} differ on axis {axis}, {left} and {right}")


def narrow(one: Shape, other: Shape) -> Shape:
    """The sizes that fit both: what the one leaves open, the other may say."""
    return tuple(right if left is None else left for left, right in zip(one, other, strict=True))


def _error(message: str) -> ConfigError:
    return ConfigError(message, key="ensemble_scheduling.step")
