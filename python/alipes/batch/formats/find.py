"""The kind of a file, by the end of its name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from alipes.batch.formats.base import FileFormat
from alipes.batch.formats.hdf5 import Hdf5
from alipes.batch.formats.json_lines import JsonLines
from alipes.batch.formats.numpy_files import Npy, Npz
from alipes.batch.formats.parquet import Parquet
from alipes.batch.formats.picture_archive import PictureArchive
from alipes.batch.formats.pictures import Pictures
from alipes.errors import ConfigError

__all__ = ["FORMS", "SUFFIXES", "file_format"]

_ALL: Final[tuple[FileFormat, ...]] = (Npz(), Npy(), Hdf5(), Parquet(), JsonLines(), PictureArchive(), Pictures())
SUFFIXES: Final[Mapping[str, FileFormat]] = {suffix: one for one in _ALL for suffix in one.suffixes}
"""Every end of a name that is known."""
FORMS: Final[Mapping[str, FileFormat]] = {one.suffixes[0][1:]: one for one in _ALL if not isinstance(one, Pictures)}
"""What results are written as, by a short name."""


def file_format(path: str | os.PathLike[str]) -> FileFormat:
    """The kind of a file.

    Raises:
        ConfigError: If its name does not say.
    """
    name = os.fspath(path)
    end = os.path.splitext(name)[1].lower()  # noqa: PTH122 - a hundred thousand names are looked at
    found = SUFFIXES.get(end)
    if found is None:
        raise ConfigError(f"{name}: files whose names end in {', '.join(SUFFIXES)} are read", key="inputs")
    return found
