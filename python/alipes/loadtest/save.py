"""Files of results, whose names say their format."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from alipes.errors import ConfigError
from alipes.tables import library

__all__ = ["check_path"]

_PICTURES: Final = (".png", ".svg", ".pdf")
_FORMATS: Final = (".csv", ".parquet", ".json", ".html", *_PICTURES)


def check_path(path: str | os.PathLike[str]) -> Path:
    """The path, if results can be written there: who measures for an hour wants to know before.

    Raises:
        ConfigError: If its name ends in no format, or its folder is not there.
        Unsupported: If the format needs a library that is not installed.
    """
    file = Path(path)
    if file.suffix not in _FORMATS:
        raise ConfigError(f"'{file}' names no format: expected a name that ends in {_listed(_FORMATS)}", key="path")
    if not file.absolute().parent.is_dir():
        raise ConfigError(f"'{file}' cannot be written: there is no folder '{file.parent}'", key="path")
    if file.suffix == ".parquet":
        library("pyarrow")
    if file.suffix in (".html", *_PICTURES):
        from alipes.plots.picture import picture

        picture()
    return file


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
