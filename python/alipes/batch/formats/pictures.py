"""Pictures: a row each, sent as the file's bytes to a model that takes texts, as colours of pixels to any other."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from alipes.batch.formats.base import WHOLE, Array, Block, Part, Wanted
from alipes.errors import Unsupported

__all__ = ["Pictures", "pixels"]


class Pictures:
    """A picture, whose bytes are the row: what decodes it knows whether the model wants pixels."""

    suffixes = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")
    counts_rows = True

    def parts(self, path: Path, unit_bytes: int, wanted: Wanted) -> list[Part]:
        """None: a picture is one row."""
        return [WHOLE]

    def read(self, path: Path, part: Part, wanted: Wanted) -> Iterator[Block]:
        """The bytes of the file."""
        content = np.empty(1, object)
        content[0] = path.read_bytes()
        yield Block({wanted.only: content}, 1)

    def write(self, path: Path, columns: Mapping[str, Array]) -> None:
        """Refused: a piece has more than one row."""
        raise Unsupported("results are no single pictures: write zip, npz, npy, h5, parquet or jsonl")


def pixels(content: bytes, shape: tuple[int, ...]) -> Array:
    """The colours of a picture's pixels, in the order of axes that a shape has.

    Args:
        content: A file.
        shape: Of a row: channels first where the first of three sizes is 1 or 3, or last; two sizes are grey.

    Raises:
        ValueError: If it is no picture.
        Unsupported: If Pillow is not installed.
    """
    try:
        library: Any = import_module("PIL.Image")
    except ImportError as error:
        raise Unsupported("decoding pictures needs Pillow: install it with `pip install 'alipes[batch]'`") from error
    try:
        with library.open(io.BytesIO(content)) as picture:
            channels_first = len(shape) == 3 and shape[0] in (1, 3) and shape[2] not in (1, 3)
            grey = len(shape) == 2 or (shape[0] if channels_first else shape[-1]) == 1
            array = np.asarray(picture.convert("L" if grey else "RGB"))
    except OSError as error:
        raise ValueError(f"it is no picture that can be read: {error}") from error
    if len(shape) == 3 and array.ndim == 2:
        array = array[..., None]
    return np.ascontiguousarray(array.transpose(2, 0, 1)) if channels_first else array
