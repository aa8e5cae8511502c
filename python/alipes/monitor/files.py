"""The record as a file of comma-separated values, written row by row and read back."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from alipes.errors import MonitorError
from alipes.monitor.columns import NINE, Column
from alipes.monitor.ledger import Row

__all__ = ["header", "read_rows", "values", "write_rows"]


def header(columns: Sequence[Column]) -> str:
    """The first line, without its end: every row brings the end of the line before."""
    return ",".join((*NINE, *(column.name for column in columns)))


def values(row: Row, columns: Sequence[Column] = ()) -> list[str]:
    """The fields of a row, in the order of the columns."""
    fixed = [str(row.timestamp), row.ip, row.model, str(row.count), *map(str, row.durations_us.values())]
    return [*fixed, *(_number(row.extras.get(column.name, 0.0)) for column in columns)]


def write_rows(file: TextIO, rows: Sequence[Row], columns: Sequence[Column]) -> None:
    """Appends rows, all at once, and hands them to the system, so that a reader sees them."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="")
    for row in rows:
        text.write("\n")
        writer.writerow(values(row, columns))
    file.write(text.getvalue())
    file.flush()


def read_rows(filename: str | Path) -> list[Row]:
    """Every row of a record, in order.

    Raises:
        MonitorError: If the file is no record.
    """
    with Path(filename).open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames is None or tuple(reader.fieldnames[: len(NINE)]) != NINE:
            raise MonitorError(f"{filename} is no record of a monitor: its first line does not begin {','.join(NINE)}")
        try:
            return [_row(fields) for fields in reader]
        except (TypeError, ValueError) as error:
            raise MonitorError(f"{filename}:{reader.line_num}: {error}") from error


def _row(fields: dict[str, str]) -> Row:
    extras = {name: float(fields[name]) for name in fields if name not in NINE}
    durations = {name: int(fields[name]) for name in NINE[4:]}
    count, version = int(fields["count"]), int(extras.get("version", 1))
    return Row(float(fields["timestamp"]), fields["ip"], fields["model"], version, count, durations, extras)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:g}"
