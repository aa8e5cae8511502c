"""Amounts in the way of Kubernetes, as numbers."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

__all__ = ["bytes_of", "cores_of"]

_UNITS: Final[dict[str, Fraction]] = {
    "": Fraction(1),
    "m": Fraction(1, 1000),
    **{letter: Fraction(1000**power) for power, letter in enumerate("kMGT", 1)},
    **{f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGT", 1)},
}
_QUANTITY: Final = re.compile(r"([0-9.]+)([a-zA-Z]*)")


def _number(quantity: str) -> Fraction:
    found = _QUANTITY.fullmatch(quantity)
    assert found is not None, "descriptions hold quantities alone"
    return Fraction(found[1]) * _UNITS[found[2]]


def bytes_of(quantity: str) -> int:
    """Bytes, such as 2147483648 of `2Gi`."""
    return int(_number(quantity))


def cores_of(quantity: str) -> float:
    """Cores, such as 0.5 of `500m`."""
    return float(_number(quantity))
