"""Zip files of pictures: a picture is a row. Results are PNG files in a folder for each output."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from alipes.batch.formats.base import WHOLE, Array, Block, Part, Wanted
from alipes.errors import Unsupported

__all__ = ["PictureArchive", "add_pictures"]


_ENDS: Final = {
    b"\x89PNG": ".png",
    b"\xff\xd8": ".jpg",
    b"GIF8": ".gif",
    b"RIFF": ".webp",
    b"BM": ".bmp",
    b"II*": ".tif",
}
"""Ends of names, by how files begin."""


class PictureArchive:
    """An archive. Nothing in it is compressed again: pictures are."""

    suffixes = (".zip",)
    counts_rows = True

    def parts(self, path: Path, unit_bytes: int, wanted: Wanted) -> list[Part]:
        """None: members are found by the end of the file."""
        return [WHOLE]

    def read(self, path: Path, part: Part, wanted: Wanted) -> Iterator[Block]:
        """The bytes of the members, in the order of their names; folders are inputs."""
        with zipfile.ZipFile(path) as archive:
            by_folder: dict[str, list[str]] = {}
            for name in sorted(one.filename for one in archive.infolist() if not one.is_dir()):
                by_folder.setdefault(name.rpartition("/")[0], []).append(name)
            named = by_folder.keys() & wanted.ranks.keys()
            found = {name: by_folder[name] for name in wanted.among(list(named))} if named else {}
            rows = found or {wanted.only: [name for names in by_folder.values() for name in names]}
            if len({len(names) for names in rows.values()}) != 1:
                raise ValueError(f"its folders have {', '.join(str(len(names)) for names in rows.values())} pictures")
            for names in zip(*rows.values(), strict=True):
                yield Block({name: _text(archive.read(one)) for name, one in zip(rows, names, strict=True)}, 1)

    def write(self, path: Path, columns: Mapping[str, Array]) -> None:
        """Writes rows, a picture each."""
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            add_pictures(archive, columns, 0)


def add_pictures(archive: zipfile.ZipFile, columns: Mapping[str, Array], first: int) -> None:
    """Adds rows to an archive.

    Args:
        archive: The archive.
        columns: Pixels, or files of pictures, by output.
        first: Number of the first row.

    Raises:
        ValueError: If they are no pictures.
        Unsupported: If Pillow is not installed.
    """
    for name, array in columns.items():
        for number, row in enumerate(array, first):
            content = _file(row) if array.dtype.kind in "OS" else _png(name, row)
            end = next((end for start, end in _ENDS.items() if content.startswith(start)), "")
            archive.writestr(zipfile.ZipInfo(f"{name}/{number:08}{end}"), content)


def _text(content: bytes) -> Array:
    array = np.empty(1, object)
    array[0] = content
    return array


def _file(row: Any) -> bytes:
    """The one text of a row."""
    texts = np.asarray(row, object).ravel()
    if len(texts) != 1 or not isinstance(texts[0], bytes):
        raise ValueError(f"a row has {len(texts)} texts, and a picture is one")
    return texts[0]


def _png(name: str, row: Array) -> bytes:
    """A PNG file of pixels."""
    try:
        library: Any = import_module("PIL.Image")
    except ImportError as error:
        raise Unsupported("writing pictures needs Pillow: install it with `pip install 'alipes[batch]'`") from error
    shape = row.shape
    if len(shape) == 3 and shape[0] in (1, 3) and shape[2] not in (1, 3):
        row = row.transpose(1, 2, 0)
    if row.dtype != np.uint8 or not (row.ndim == 2 or (row.ndim == 3 and row.shape[2] in (1, 3))):
        raise ValueError(
            f"output '{name}' has {row.dtype.name} rows of the shape {list(shape)}; pictures are uint8 of [height, "
            "width], with an axis of 1 or 3 colours first or last: write npz"
        )
    file = io.BytesIO()
    library.fromarray(np.ascontiguousarray(row[..., 0] if row.shape[2:] == (1,) else row)).save(file, "PNG")
    return file.getvalue()
