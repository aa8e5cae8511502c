"""Rows as tables: CSV, Parquet, pandas."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from alipes.errors import ConfigError, Unsupported

__all__ = ["Rows", "frame", "frame_of", "library", "to_csv", "without_nan", "write_parquet"]

Rows: TypeAlias = Sequence[Mapping[str, Any]]
"""All with the same names."""


def without_nan(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row as JSON can say it: `None` in place of what is no number."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()
    }


def frame(rows: Rows) -> Any:
    """The rows as a `pandas.DataFrame`.

    Raises:
        Unsupported: If pandas is not installed.
    """
    return library("pandas").DataFrame(rows)


def frame_of(tables: Mapping[str, Callable[[], Rows]], of: str) -> Any:
    """A `pandas.DataFrame` of one of several tables.

    Raises:
        ConfigError: If there is no table `of` this name.
        Unsupported: If pandas is not installed.
    """
    if of not in tables:
        raise ConfigError(f"there is no table '{of}': expected {' or '.join(tables)}", key="of")
    return frame(tables[of]())


def to_csv(rows: Rows) -> str:
    """The rows with a line of names above; empty where a value is not known."""
    text = io.StringIO()
    out = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    out.writeheader()
    out.writerows(without_nan(row) for row in rows)
    return text.getvalue()


def write_parquet(rows: Rows, path: Path) -> None:
    """Writes the rows as a Parquet file.

    Raises:
        Unsupported: If pyarrow is not installed.
    """
    arrow, parquet = library("pyarrow"), library("pyarrow.parquet")
    parquet.write_table(arrow.Table.from_pylist([dict(row) for row in rows]), path)


def library(name: str) -> Any:
    """A library of the extra `tables`.

    Raises:
        Unsupported: If it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise Unsupported(f"such tables need {package}: install it with `pip install 'alipes[tables]'`") from error
