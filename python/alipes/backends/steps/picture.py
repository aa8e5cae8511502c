"""Prepares the step that makes tensors of pictures: decoded, turned, resized, cropped, and written as numbers."""

from __future__ import annotations

from typing import Any

from alipes.backends.steps.backend import StepBackend, list_tensor
from alipes.config.datatypes import v2_name
from alipes.config.step_parameters import PICTURE_PARAMETERS

__all__ = ["PictureBackend"]

_CHANNELS = {"RGB": 3, "BGR": 3, "L": 1}
_FILTERS = ("bilinear", "bicubic", "lanczos", "box", "nearest")
_NUMBERS = ("scale", "mean", "std")


class PictureBackend(StepBackend):
    """Prepares one version of a step that reads pictures."""

    kind = "picture"
    rows = PICTURE_PARAMETERS
    forms_batches = False

    def complete_tensors(self) -> None:
        """List the file, and the tensor that is made of it."""
        config = self.draft.config
        if not config.input:
            list_tensor(config.input, "picture", "BYTES", [1])
        if not config.output:
            list_tensor(config.output, "tensor", self.parameters.choice("dtype", ("FP32", "UINT8")), self._dims())

    def step(self) -> dict[str, Any]:
        """How pictures are read."""
        (file,), (tensor,) = self.tensors("input", 1), self.tensors("output", 1)
        self.check_tensor("input", file, ("BYTES",), [1])
        self.check_tensor("output", tensor, ("FP32", "UINT8"), self._dims())
        made = v2_name(tensor.data_type)
        if "dtype" in self.parameters.texts and self.parameters.choice("dtype", ("FP32", "UINT8")) != made:
            raise self.error(
                f"has '{tensor.name}' of {made}, but the parameter 'dtype' says another", "output.data_type"
            )
        max_pixels = self.parameters.pixels("max_pixels")
        crop, resize = self._crop(), self.parameters.size("resize")
        if self.draft.config.max_batch_size > 0 and self._size() is None:
            raise self.error(
                "batches pictures, which then need one size: give 'resize' a width and a height, or give 'crop'",
                "parameters.resize",
            )
        for key, size in (("resize", resize), ("crop", crop)):
            if size is not None and size[0] * (size[1] or 1) > max_pixels:
                raise self.error(
                    f"has a '{key}' of more than the {max_pixels} pixels of max_pixels", f"parameters.{key}"
                )
        if made == "UINT8":
            self._check_bytes()
        channels = self.parameters.choice("channels", tuple(_CHANNELS))
        return {
            "resize": _resize(resize),
            "filter": self.parameters.choice("resize_filter", _FILTERS),
            "crop": crop,
            "channels": channels.lower(),
            "layout": self.parameters.choice("layout", ("NCHW", "NHWC")).lower(),
            "numbers": self._numbers(_CHANNELS[channels]) if made == "FP32" else None,
            "orient": self.parameters.switch("exif_orientation", True),
            "max_pixels": max_pixels,
        }

    def _numbers(self, channels: int) -> dict[str, Any]:
        factor, divisor = self.parameters.fraction("scale", (1.0, 255.0))
        return {
            "factor": factor,
            "divisor": divisor,
            "mean": self.parameters.numbers("mean", 0.0, channels, zero=True),
            "std": self.parameters.numbers("std", 1.0, channels, zero=False),
        }

    def _check_bytes(self) -> None:
        named = next((key for key in _NUMBERS if key in self.parameters.texts), None)
        if named is not None:
            raise self.error(
                f"gives bytes, which parameter '{named}' would change: it needs FP32", f"parameters.{named}"
            )

    def _crop(self) -> tuple[int, int] | None:
        crop = self.parameters.size("crop")
        return None if crop is None else (crop[0], crop[1] or crop[0])

    def _size(self) -> tuple[int, int] | None:
        """Width and height of every tensor; None where they follow from the picture."""
        resize = self.parameters.size("resize")
        exact = (resize[0], resize[1]) if resize is not None and resize[1] is not None else None
        return self._crop() or exact

    def _dims(self) -> list[int]:
        width, height = self._size() or (-1, -1)
        channels = _CHANNELS[self.parameters.choice("channels", tuple(_CHANNELS))]
        rows_first = self.parameters.choice("layout", ("NCHW", "NHWC")) == "NHWC"
        return [height, width, channels] if rows_first else [channels, height, width]


def _resize(size: tuple[int, int | None] | None) -> dict[str, Any] | None:
    if size is None:
        return None
    width, height = size
    if height is None:
        return {"kind": "short_side", "pixels": width}
    return {"kind": "exact", "width": width, "height": height}
