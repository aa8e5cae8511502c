"""Records as the bytes of a file: JSON lines, CSV, Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from alipes.errors import ConfigError
from alipes.server.payloads.record import COLUMNS, Record

__all__ = ["FORMATS", "FileFormat", "format_of"]


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A format of files.

    Attributes:
        ending: What the names of its files end in.
        encode: From records to a file's bytes.
        package: What it needs, of the extra `tables`; empty for none.
    """

    ending: str
    encode: Callable[[Sequence[Record]], bytes]
    package: str = ""


def _json(records: Sequence[Record]) -> bytes:
    """A document in each line, without what is empty, as KServe's has it."""
    return b"".join(json.dumps(_document(one), separators=(",", ":")).encode() + b"\n" for one in records)


def _document(record: Record) -> Record:
    document = {name: value for name, value in record.items() if value}
    if "metadata" in document:
        document["metadata"] = json.loads(document["metadata"])
    return document


def _csv(records: Sequence[Record]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_cell(one[name]) for name in COLUMNS] for one in records)
    return text.getvalue().encode()


def _cell(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parquet(records: Sequence[Record]) -> bytes:
    arrow: Any = import_module("pyarrow")
    parquet: Any = import_module("pyarrow.parquet")
    kinds = {"tlsSkipVerify": arrow.bool_(), "status": arrow.int32()}
    schema = arrow.schema([(name, kinds.get(name, arrow.string())) for name in COLUMNS])
    columns = {name: [one[name] for one in records] for name in COLUMNS}
    content = io.BytesIO()
    parquet.write_table(arrow.table(columns, schema=schema), content)
    return content.getvalue()


FORMATS: Final = {
    "json": FileFormat("jsonl", _json),
    "csv": FileFormat("csv", _csv),
    "parquet": FileFormat("parquet", _parquet, "pyarrow"),
}
"""By the names that KServe's logger has for them."""


def format_of(name: str) -> FileFormat:
    """The format of a name.

    Raises:
        ConfigError: If its package is missing.
    """
    found = FORMATS[name]
    if found.package and find_spec(found.package) is None:
        raise ConfigError(
            f"files of {name} need the package {found.package}",
            key="payload-log-format",
            hint="pip install 'alipes[tables]'",
        )
    return found
