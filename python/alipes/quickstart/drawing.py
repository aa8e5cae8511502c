"""Scans as text: two characters a pixel, which makes a pixel about square in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from alipes.quickstart.digits import INK

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

BLOCKS: Final = " ░▒▓█"
"""From paper to ink."""

ASCII: Final = " .:+#"
"""The same for a terminal that shows no blocks."""

_GAP: Final = "   "
_SIDE: Final = 8

CELL_WIDTH: Final = 2 * _SIDE
"""Columns that one drawn scan takes."""


def draw(scan: npt.NDArray[np.uint8], shades: str = BLOCKS) -> list[str]:
    """Eight lines of `CELL_WIDTH` characters for a scan `[8, 8]`; a darker pixel takes a later shade."""
    return ["".join(2 * shades[_shade(int(pixel), len(shades))] for pixel in row) for row in scan]


def side_by_side(blocks: Sequence[Sequence[str]]) -> list[str]:
    """Lines of several blocks of equal height, next to each other."""
    return [_GAP.join(line).rstrip() for line in zip(*blocks, strict=True)]


def fitting(columns: int) -> int:
    """How many drawn scans stand side by side in a terminal of that width; at least one."""
    return max(1, (columns + len(_GAP)) // (CELL_WIDTH + len(_GAP)))


def _shade(pixel: int, shades: int) -> int:
    """Paper alone is blank: the faintest ink gets the first visible shade."""
    return -(-pixel * (shades - 1) // INK)
