"""Records of a payload log's files: JSON lines and Parquet, of folders too."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from alipes.errors import ConfigError
from alipes.tables import library

__all__ = ["LogRecord", "log_records"]

LogRecord = Mapping[str, Any]
"""By column, of which a file may lack all but the `_NEEDED`."""

_LINES: Final = (".jsonl",)
_TABLES: Final = (".parquet",)
_NEEDED: Final = ("reqType", "bytes")
_READ: Final = (*_NEEDED, "endpoint", "contentType", "occurrenceTime", "path")
"""The columns that a replay looks at."""


def log_records(paths: Sequence[Path]) -> Iterator[LogRecord]:
    """All records of files, and of the files in folders, in the order of their names.

    Raises:
        ConfigError: If a path is none of these, or a file cannot be read.
        Unsupported: If a package is missing that Parquet needs.
    """
    for path in paths:
        for file in _files(path):
            read = _lines if file.suffix in _LINES else _rows
            for number, record in enumerate(read(file), start=1):
                if not isinstance(record, dict) or any(not isinstance(record.get(name), str) for name in _NEEDED):
                    raise ConfigError(
                        f"record {number} of '{file}' is none of a payload log: it lacks reqType or bytes"
                    )
                yield record


def _files(path: Path) -> list[Path]:
    known = (*_LINES, *_TABLES)
    if not path.is_dir():
        if path.suffix not in known:
            raise ConfigError(f"'{path}' is no file that is replayed: expected {' or '.join(known)}, or a folder")
        return [path]
    found = sorted(one for one in path.rglob("*") if one.suffix in known)
    if not found:
        raise ConfigError(f"no file in '{path}' ends in {' or '.join(known)}")
    return found


def _lines(file: Path) -> Iterator[Any]:
    try:
        with file.open("rb") as lines:
            for line in lines:
                if line.strip():
                    yield json.loads(line)
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"'{file}' has lines that are no JSON, or cannot be read: {error}") from error


def _rows(file: Path) -> Iterator[Any]:
    parquet = library("pyarrow.parquet")
    try:
        with parquet.ParquetFile(file) as table:
            for batch in table.iter_batches(columns=list(_READ)):
                yield from batch.to_pylist()
    except (OSError, ValueError) as error:
        raise ConfigError(f"'{file}' cannot be read as Parquet: {error}") from error
