"""HDF5: a dataset for each input, by its path."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from alipes.batch.formats.base import WHOLE, Array, Block, Part, Wanted, even_parts
from alipes.errors import Unsupported

__all__ = ["Hdf5", "hdf5_library"]


def hdf5_library() -> Any:
    """The library that reads and writes HDF5.

    Raises:
        Unsupported: If it is not installed.
    """
    try:
        return import_module("h5py")
    except ImportError as error:
        raise Unsupported("HDF5 needs h5py: install it with `pip install 'alipes[batch]'`") from error


class Hdf5:
    """Datasets whose first axis is the rows."""

    suffixes = (".h5", ".hdf5", ".hdf")
    counts_rows = True

    def parts(self, path: Path, unit_bytes: int, wanted: Wanted) -> list[Part]:
        """By rows."""
        with hdf5_library().File(path, "r") as file:
            found = _datasets(file, wanted)
            rows = {one.shape[0] if one.shape else -1 for one in found.values()}
            if len(rows) != 1 or any(len(one.shape) != wanted.ranks[name] for name, one in found.items()):
                return [WHOLE]
            size = sum(math.prod(one.shape) * one.dtype.itemsize for one in found.values())
            return even_parts(rows.pop(), size, unit_bytes)

    def read(self, path: Path, part: Part, wanted: Wanted) -> Iterator[Block]:
        """The rows."""
        with hdf5_library().File(path, "r") as file:
            found = _datasets(file, wanted)
            arrays = {name: one[()] if part == WHOLE else one[part[0] : part[1]] for name, one in found.items()}
        yield Block({name: np.asarray(array) for name, array in arrays.items()})

    def write(self, path: Path, columns: Mapping[str, Array]) -> None:
        """Writes a dataset for each column."""
        library = hdf5_library()
        with library.File(path, "w", track_order=True) as file:
            for name, array in columns.items():
                kind = library.string_dtype() if array.dtype.kind in "OUS" else array.dtype
                file.create_dataset(name, data=array.astype(object) if array.dtype.kind == "U" else array, dtype=kind)


def _datasets(file: Any, wanted: Wanted) -> dict[str, Any]:
    datasets: dict[str, Any] = {}
    kind = hdf5_library().Dataset
    file.visititems(lambda name, one: datasets.__setitem__(name, one) if isinstance(one, kind) else None)
    if len(datasets) == 1 and len(wanted.required or wanted.ranks) == 1:
        return {wanted.only: next(iter(datasets.values()))}
    return {name: datasets[name] for name in wanted.among(list(datasets))}
