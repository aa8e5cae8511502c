"""The lab's transform in Pillow and numpy: resize, crop the centre, scale, normalise; no torchvision."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PIL import Image

MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)


def resize(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    """`transforms.Resize((height, width))`.

    For a picture of Pillow, torchvision calls this same function: bilinear, with the filter widened where the picture
    shrinks, which is what its `antialias` means.
    """
    height, width = size
    return image.resize((width, height), Image.Resampling.BILINEAR)


def center_crop(image: Image.Image, side: int) -> Image.Image:
    """`transforms.CenterCrop(side)`, with torchvision's way to round the borders, for pictures that are no smaller."""
    left, top = round((image.width - side) / 2), round((image.height - side) / 2)
    return image.crop((left, top, left + side, top + side))


def to_array(image: Image.Image) -> npt.NDArray[np.float32]:
    """`transforms.ToTensor()`: channels first, 0 to 1."""
    return np.asarray(image, np.uint8).transpose(2, 0, 1).astype(np.float32) / np.float32(255)


def normalize(pixels: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """`transforms.Normalize(MEAN, STD)`."""
    return (pixels - MEAN[:, None, None]) / STD[:, None, None]


def transform(image: Image.Image) -> npt.NDArray[np.float32]:
    """FP32 ``[3, 224, 224]`` from an RGB picture of any size: the lab's four steps."""
    return normalize(to_array(center_crop(resize(image, (224, 224)), 224)))
