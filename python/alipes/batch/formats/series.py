"""Time series in files: arrays whose last axis is the time, read from a sample to a sample."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from alipes.batch.formats.base import Array
from alipes.batch.formats.hdf5 import hdf5_library
from alipes.batch.formats.numpy_files import ArrayHeader, array_header, read_elements, stored_header

__all__ = ["Series", "open_series"]

_Read: TypeAlias = Callable[[int, int], Array]


class Series:
    """A time series of a file that is open.

    Attributes:
        shape: Its sizes; the last one is the number of samples.
        dtype: Of its samples.
    """

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], read: _Read) -> None:
        """Takes what is known of it, and what reads samples of it."""
        self.shape, self.dtype, self._read = shape, dtype, read

    @property
    def samples(self) -> int:
        """Number of the samples."""
        return self.shape[-1]

    @property
    def channels(self) -> int:
        """Values of each sample."""
        return math.prod(self.shape[:-1])

    def read(self, first: int, stop: int) -> Array:
        """Some samples.

        Raises:
            ValueError: If the file ends before them.
        """
        return self._read(first, min(stop, self.samples))


@contextmanager
def open_series(path: Path) -> Iterator[Series]:
    """The only array of a file.

    Raises:
        ValueError: If there are several, or it has no axis.
    """
    if path.suffix in (".h5", ".hdf5", ".hdf"):
        library = hdf5_library()
        with library.File(path, "r") as file:
            found: list[Any] = []
            file.visititems(lambda _, one: found.append(one) if isinstance(one, library.Dataset) else None)
            (dataset,) = _only(found)
            yield _checked(Series(dataset.shape, dataset.dtype, lambda first, stop: dataset[..., first:stop]))
    elif path.suffix == ".npz":
        with path.open("rb") as raw, zipfile.ZipFile(raw) as archive:
            (info,) = _only(archive.infolist())
            if info.compress_type == zipfile.ZIP_STORED:
                yield _of_numpy(raw, stored_header(raw, info))
            else:
                with archive.open(info) as member:
                    array = np.lib.format.read_array(member, allow_pickle=False)
                yield _checked(Series(array.shape, array.dtype, lambda first, stop: array[..., first:stop]))
    elif path.suffix == ".npy":
        with path.open("rb") as raw:
            yield _of_numpy(raw, array_header(raw))
    else:
        raise ValueError("a time series is an array in a file npy, npz or h5")


def _of_numpy(file: BinaryIO, head: ArrayHeader) -> Series:
    def read(first: int, stop: int) -> Array:
        if head.fortran:
            return read_elements(file, head, head.data, head.shape)[..., first:stop]
        size, samples = head.dtype.itemsize, head.shape[-1]
        rows = [
            read_elements(file, head, head.data + (row * samples + first) * size, (stop - first,))
            for row in range(math.prod(head.shape[:-1]))
        ]
        return np.stack(rows).reshape(*head.shape[:-1], stop - first)

    return _checked(Series(head.shape, head.dtype, read))


def _only(found: list[Any]) -> list[Any]:
    if len(found) != 1:
        raise ValueError(f"it has {len(found)} arrays, and a time series is one")
    return found


def _checked(series: Series) -> Series:
    if not series.shape:
        raise ValueError("it is a number, not a time series")
    return series
