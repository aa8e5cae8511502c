"""Pictures for tests: what a camera might see, in the files that Pillow writes."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint8]


def photo(width: int, height: int, *, seed: int = 1, mode: str = "RGB") -> Image.Image:
    """Smooth patches with some noise, which compress about as well as a photograph."""
    noise = np.random.default_rng(seed)
    patches = Image.fromarray(noise.integers(0, 256, (height // 25 + 2, width // 25 + 2, 3), dtype=np.uint8))
    smooth = np.asarray(patches.resize((width, height), Image.Resampling.BICUBIC), np.float64)
    picture = Image.fromarray(np.clip(smooth + noise.normal(0, 6, smooth.shape), 0, 255).astype(np.uint8))
    return picture if mode == "RGB" else picture.convert(mode)


def file_of(picture: Image.Image, kind: str, **options: Any) -> bytes:
    """The file of a picture."""
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def decoded(file: bytes, mode: str = "RGB") -> Pixels:
    """What Pillow reads from a file: height x width x channels."""
    with Image.open(io.BytesIO(file)) as picture:
        # What is transparent keeps its colour.
        stored = picture.convert("RGBA").convert("RGB") if "transparency" in picture.info else picture.convert("RGB")
    pixels = np.asarray(stored.convert(mode))
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


def resized(picture: Image.Image, size: tuple[int, int], filter_: Image.Resampling) -> Image.Image:
    """A picture at another size, in the order of Pillow 13: earlier releases always make rows shorter first."""
    (width, height), (wide, high) = picture.size, size
    columns_first = high < height and height - high > 2 * (width - wide)
    half_way = (width, high) if columns_first else (wide, height)
    return picture.resize(half_way, filter_).resize(size, filter_)
