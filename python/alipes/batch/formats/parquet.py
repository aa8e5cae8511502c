"""Parquet: a column for each input, of numbers, texts or lists of numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from alipes.batch.formats.base import WHOLE, Array, Block, Part, Wanted
from alipes.tables import library

__all__ = ["Parquet", "table_of"]

_ROWS: Final = 8192
"""Rows that are read at a time."""


class Parquet:
    """Rows of a table."""

    suffixes = (".parquet", ".pq")
    counts_rows = False

    def parts(self, path: Path, unit_bytes: int, wanted: Wanted) -> list[Part]:
        """By groups of rows, which the file has already."""
        with library("pyarrow.parquet").ParquetFile(path) as file:
            sizes = [file.metadata.row_group(number).total_byte_size for number in range(file.num_row_groups)]
        edges = [0]
        gathered = 0
        for number, size in enumerate(sizes):
            if gathered and gathered + size > unit_bytes:
                edges.append(number)
                gathered = 0
            gathered += size
        return list(zip(edges, [*edges[1:], len(sizes)], strict=True))

    def read(self, path: Path, part: Part, wanted: Wanted) -> Iterator[Block]:
        """The rows, some thousand at a time."""
        with library("pyarrow.parquet").ParquetFile(path) as file:
            columns = file.schema_arrow.names
            names = {wanted.only: columns[0]} if len(columns) == 1 and len(wanted.required or wanted.ranks) == 1 else {}
            names = names or {name: name for name in wanted.among(columns)}
            groups = range(file.num_row_groups) if part == WHOLE else range(*part)
            for batch in file.iter_batches(_ROWS, row_groups=list(groups), columns=list(names.values())):
                arrays = {name: _array(batch.column(column)) for name, column in names.items()}
                yield Block(arrays, batch.num_rows)

    def write(self, path: Path, columns: Mapping[str, Array]) -> None:
        """Writes a column for each."""
        library("pyarrow.parquet").write_table(table_of(columns), path)


def table_of(columns: Mapping[str, Array]) -> Any:
    """A table of columns."""
    arrow = library("pyarrow")
    return arrow.table({name: _column(arrow, array) for name, array in columns.items()})


def _array(column: Any) -> Array:
    """The values of a column; rows of lists are rows of an array, where they are equally long."""
    if column.null_count:
        raise ValueError(f"a column has {column.null_count} empty cells")
    kind = f"{column.type}"
    if not kind.startswith(("list", "fixed_size_list", "large_list")):
        array = np.asarray(column.to_numpy(zero_copy_only=False))
        return array.astype(object) if array.dtype.kind == "U" else array
    values = _array(column.flatten())
    if len(column) and len(values) % len(column) == 0 and len({len(row) for row in column}) == 1:
        return values.reshape(len(column), -1, *values.shape[1:])
    raise ValueError("the lists of a column differ in length")


def _column(arrow: Any, array: Array) -> Any:
    """A column; of rows that are arrays, lists of as many numbers."""
    if array.ndim == 1:
        return arrow.array([_text(one) for one in array] if array.dtype.kind in "OS" else array)
    inner = _column(arrow, array.reshape(-1, *array.shape[2:]))
    return arrow.FixedSizeListArray.from_arrays(inner, array.shape[1])


def _text(value: Any) -> Any:
    """Text where it is one; else the bytes."""
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
