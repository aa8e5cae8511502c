"""A frame read from its file, whole and of the size of the others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from alipes.batch.formats.base import Array
from alipes.batch.formats.series import open_series
from alipes.datatypes import numpy_type
from alipes.errors import Unsupported

__all__ = ["FrameShape", "read_frame"]


class FrameShape:
    """What every frame of a stream looks like."""

    def __init__(self, update: Sequence[int], datatype: str, samples: int | None = None) -> None:
        """Takes what the model takes.

        Args:
            update: Sizes of an update of the model's stream.
            datatype: Of its samples.
            samples: Samples of a frame; those of the first one that fits by default.
        """
        self._channels = tuple(size for size in update[:-1] if size != 1)
        self._dtype = numpy_type(datatype)
        self._update = update[-1]
        self.samples = samples

    def check(self, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
        """Refuses a frame that does not fit.

        Raises:
            ValueError: If it is of another shape or type.
        """
        channels = tuple(size for size in shape[:-1] if size != 1)
        if channels != self._channels:
            raise ValueError(
                f"it has the shape {list(shape)}, and the model takes {list(self._channels) or 'one value'} for each "
                "sample of the last axis"
            )
        if self._dtype is not None and dtype != self._dtype:
            raise ValueError(f"it holds {dtype}, and the model takes {np.dtype(self._dtype)}")
        if self.samples is not None and shape[-1] != self.samples:
            raise ValueError(f"it has {shape[-1]} samples, and frames of this stream have {self.samples}")
        if not shape[-1] or shape[-1] % self._update:
            raise ValueError(f"it has {shape[-1]} samples, and the model takes {self._update} at a time")

    def zeros(self) -> Array:
        """A frame in the place of a missing one.

        Raises:
            ValueError: If no frame has been seen yet.
        """
        if self.samples is None:
            raise ValueError("how long a frame is, is unknown")
        return np.zeros((*self._channels, self.samples), self._dtype)

    @property
    def updates(self) -> int:
        """Updates of a frame."""
        return (self.samples or 0) // self._update

    def cut(self, frame: Array) -> list[Array]:
        """The updates of a frame."""
        return [frame[..., at : at + self._update] for at in range(0, frame.shape[-1], self._update)]


def read_frame(path: Path, shape: FrameShape) -> Array:
    """The samples of a frame.

    Raises:
        ValueError: If the file is broken, changes while it is read, or is of another size than the others.
    """
    try:
        before = _state(path)
        with open_series(path) as series:
            shape.check(series.shape, series.dtype)
            frame = np.ascontiguousarray(series.read(0, series.samples))
        if _state(path) != before:
            raise ValueError("it changed while it was read")
    except (ValueError, MemoryError, Unsupported):
        raise
    except OSError as error:
        raise ValueError(f"it cannot be read: {error.strerror or error}") from error
    except Exception as error:  # whatever a library says of a file that is damaged
        raise ValueError(f"{type(error).__name__}: {error}") from error
    return frame


def _state(path: Path) -> tuple[int, int, int]:
    state = os.stat(path)  # noqa: PTH116 - twice for each frame
    return state.st_ino, state.st_size, state.st_mtime_ns
