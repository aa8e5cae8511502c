"""Results as files, in the format that a file's name says."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from alipes.errors import ConfigError
from alipes.loadtest.tables import Rows, library, to_csv, write_parquet

__all__ = ["Saved", "check_path", "save"]

_PICTURES: Final = (".png", ".svg", ".pdf")
_FORMATS: Final = (".csv", ".parquet", ".json", ".html", *_PICTURES)


class Saved(Protocol):
    """What can be written."""

    def rows(self) -> Rows:
        """Its main table."""

    def to_dict(self) -> dict[str, Any]:
        """All figures."""

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Its picture."""

    def to_html(self, title: str) -> str:
        """Its page."""


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


def save(result: Saved, path: str | os.PathLike[str], title: str) -> None:
    """Writes a result.

    Raises:
        ConfigError: If the name ends in no format, or the folder is not there.
        Unsupported: If the format needs a library that is not installed.
    """
    file = check_path(path)
    match file.suffix:
        case ".csv":
            file.write_text(to_csv(result.rows()), encoding="utf-8")
        case ".parquet":
            write_parquet(result.rows(), file)
        case ".json":
            file.write_text(json.dumps(result.to_dict(), indent=2, allow_nan=False) + "\n", encoding="utf-8")
        case ".html":
            file.write_text(result.to_html(title), encoding="utf-8")
        case _:
            result.plot(file)


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
