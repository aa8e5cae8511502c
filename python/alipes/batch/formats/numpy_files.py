"""Files of numpy: `.npy` with one array, `.npz` with one for each input."""

from __future__ import annotations

import io
import math
import struct
import zipfile
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import numpy as np

from alipes.batch.formats.base import WHOLE, Array, Block, Part, Wanted, even_parts

__all__ = ["ArrayHeader", "Npy", "Npz", "array_header", "as_plain", "read_elements", "stored_header"]

_LOCAL_HEADER: Final = 30
"""Bytes in front of the name of a member of a zip file. Source: APPNOTE.TXT, 4.3.7."""
_LENGTHS: Final = {(1, 0): "<H", (2, 0): "<I"}
"""By version of the format: how the length of the header is written."""
_MOST_HEADER_BYTES: Final = 10_000
"""What numpy itself reads at most."""


class ArrayHeader(NamedTuple):
    """The beginning of an array in a file.

    Attributes:
        shape: Its sizes.
        fortran: Whether the last axis is the outer one.
        dtype: Of its elements.
        data: Where they begin.
    """

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[np.generic]
    data: int

    @property
    def size_bytes(self) -> int:
        """Of all elements."""
        return math.prod(self.shape) * self.dtype.itemsize


def array_header(file: BinaryIO) -> ArrayHeader:
    """The header at which a file stands.

    Raises:
        ValueError: If there is none, or the array holds objects.
    """
    version = np.lib.format.read_magic(file)
    if version not in _LENGTHS:
        raise ValueError(f"it is of version {version[0]}.{version[1]} of numpy's format, which is not read here")
    size_bytes = file.read(struct.calcsize(_LENGTHS[version]))
    if len(size_bytes) != struct.calcsize(_LENGTHS[version]):
        raise ValueError("it ends within its header")
    (size,) = struct.unpack(_LENGTHS[version], size_bytes)
    if size > _MOST_HEADER_BYTES:
        raise ValueError(f"its header has {size} bytes, and {_MOST_HEADER_BYTES} are read at most")
    shape, fortran, dtype = _described(version, size_bytes + file.read(size))
    return ArrayHeader(shape, fortran, dtype, file.tell())


@lru_cache(maxsize=256)
def _described(version: tuple[int, int], header: bytes) -> tuple[tuple[int, ...], bool, np.dtype[np.generic]]:
    """What a header says. Many small files have the same one, and numpy compiles it as a program each time."""
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(io.BytesIO(header))
    if dtype.hasobject:
        raise ValueError("it holds objects of Python, not numbers or texts")
    return tuple(shape), bool(fortran), dtype


def _array(file: BinaryIO, head: ArrayHeader, part: Part) -> Array:
    """Rows of an array. The file is read, not mapped: one that is cut meanwhile would end the process."""
    if part == WHOLE or head.fortran:
        array = read_elements(file, head, head.data, head.shape)
        return array if part == WHOLE else array[part[0] : part[1]]
    row_bytes = math.prod(head.shape[1:]) * head.dtype.itemsize
    return read_elements(file, head, head.data + part[0] * row_bytes, (part[1] - part[0], *head.shape[1:]))


def read_elements(file: BinaryIO, head: ArrayHeader, at: int, shape: tuple[int, ...]) -> Array:
    """Elements that lie behind each other.

    Raises:
        ValueError: If the file ends before them.
    """
    size = math.prod(shape) * head.dtype.itemsize
    file.seek(at)
    content = file.read(size)
    if len(content) != size:
        raise ValueError(f"it ends after {len(content)} of {size} bytes of an array")
    flat = np.frombuffer(content, head.dtype)
    return flat.reshape(shape[::-1]).T if head.fortran else flat.reshape(shape)


class Npy:
    """One array, for the model's only input."""

    suffixes = (".npy",)
    counts_rows = True

    def parts(self, path: Path, unit_bytes: int, wanted: Wanted) -> list[Part]:
        """By rows, where the array has the axis of rows."""
        with path.open("rb") as file:
            head = array_header(file)
        if head.fortran or len(head.shape) != wanted.ranks[wanted.only]:
            return [WHOLE]
        return even_parts(head.shape[0], head.size_bytes, unit_bytes)

    def read(self, path: Path, part: Part, wanted: Wanted) -> Iterator[Block]:
        """The rows."""
        with path.open("rb") as file:
            yield Block({wanted.only: _array(file, array_header(file), part)})

    def write(self, path: Path, columns: Mapping[str, Array]) -> None:
        """Writes the only column."""
        (array,) = columns.values()
        with path.open("wb") as file:
            np.save(file, as_plain(array), allow_pickle=False)


class Npz:
    """An array for each input."""

    suffixes = (".npz",)
    counts_rows = True

    def parts(self, path: Path, unit_bytes: int, wanted: Wanted) -> list[Part]:
        """By rows, where no array is compressed and all have as many."""
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            heads = {}
            for name, info in _members(archive, wanted).items():
                if info.compress_type != zipfile.ZIP_STORED:
                    return [WHOLE]
                heads[name] = stored_header(file, info)
        rows = {head.shape[0] if head.shape else -1 for head in heads.values()}
        if len(rows) != 1 or any(head.fortran or len(head.shape) != wanted.ranks[name] for name, head in heads.items()):
            return [WHOLE]
        return even_parts(rows.pop(), sum(head.size_bytes for head in heads.values()), unit_bytes)

    def read(self, path: Path, part: Part, wanted: Wanted) -> Iterator[Block]:
        """The rows."""
        arrays: dict[str, Array] = {}
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            for name, info in _members(archive, wanted).items():
                if part == WHOLE:  # read by the library, which compares the sums of the archive
                    with archive.open(info) as member:
                        arrays[name] = np.lib.format.read_array(member, allow_pickle=False)
                else:
                    arrays[name] = _array(file, stored_header(file, info), part)
        yield Block(arrays)

    def write(self, path: Path, columns: Mapping[str, Array]) -> None:
        """Writes all columns."""
        with path.open("wb") as file:
            np.savez(file, **{name: as_plain(array) for name, array in columns.items()})  # type: ignore[arg-type]


def _members(archive: zipfile.ZipFile, wanted: Wanted) -> dict[str, zipfile.ZipInfo]:
    infos = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    if list(infos) == ["arr_0"]:  # np.savez without names
        return {wanted.only: infos["arr_0"]}
    return {name: infos[name] for name in wanted.among(list(infos))}


def stored_header(file: BinaryIO, info: zipfile.ZipInfo) -> ArrayHeader:
    """The header of a member of an archive that is not compressed."""
    file.seek(info.header_offset)
    head = file.read(_LOCAL_HEADER)
    name_bytes, extra_bytes = struct.unpack("<HH", head[26:30])
    file.seek(info.header_offset + _LOCAL_HEADER + name_bytes + extra_bytes)
    return array_header(file)


def as_plain(array: Array) -> Array:
    """The array without objects: texts as bytes of one length.

    Raises:
        ValueError: If a text ends with a zero byte, which numpy would cut off.
    """
    if not array.dtype.hasobject:
        return array
    texts = [text.encode() if isinstance(text, str) else bytes(text) for text in array.ravel()]
    if any(text.endswith(b"\0") for text in texts):
        raise ValueError("a text ends with a zero byte, which numpy's files cannot hold: write parquet")
    return np.array(texts or [b""], np.bytes_)[: len(texts)].reshape(array.shape)
