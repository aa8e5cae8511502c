"""Lines of JSON: each an object with a value for each input, or the value alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from alipes.batch.formats.base import WHOLE, Array, Block, Part, Wanted

__all__ = ["JsonLines", "json_value"]

_LONGEST_LINE: Final = 1 << 30
"""Bytes of one line: more is no line."""


class JsonLines:
    """A row in each line."""

    suffixes = (".jsonl", ".ndjson")
    counts_rows = False

    def parts(self, path: Path, unit_bytes: int, wanted: Wanted) -> list[Part]:
        """By bytes, at the ends of lines."""
        size = path.stat().st_size
        edges = [0]
        with path.open("rb") as file:
            for at in range(unit_bytes, size, unit_bytes):
                if at <= edges[-1]:
                    continue
                file.seek(at - 1)
                file.readline(_LONGEST_LINE)
                if edges[-1] < file.tell() < size:
                    edges.append(file.tell())
        return list(zip(edges, [*edges[1:], size], strict=True))

    def read(self, path: Path, part: Part, wanted: Wanted) -> Iterator[Block]:
        """The rows; a line that is none is broken by itself."""
        with path.open("rb") as file:
            file.seek(part[0])
            while part == WHOLE or file.tell() < part[1]:
                line = file.readline(_LONGEST_LINE)
                if not line:
                    return
                if not line.strip():
                    continue
                try:
                    yield Block({name: np.asarray(value)[None] for name, value in _values(line, wanted).items()}, 1)
                except (ValueError, TypeError, msgspec.DecodeError) as error:
                    yield Block({}, 1, f"{error}")

    def write(self, path: Path, columns: Mapping[str, Array]) -> None:
        """Writes a line for each row."""
        with path.open("w", encoding="utf-8") as file:
            for row in zip(*columns.values(), strict=True):
                file.write(
                    json.dumps({name: json_value(value) for name, value in zip(columns, row, strict=True)}) + "\n"
                )


def _values(line: bytes, wanted: Wanted) -> dict[str, Any]:
    value = msgspec.json.decode(line)
    if not isinstance(value, dict):
        return {wanted.only: value}
    return {name: value[name] for name in wanted.among(list(value))}


def json_value(value: Any) -> Any:
    """A value of an array as JSON has it; bytes that are no text lose what is none."""
    if isinstance(value, np.ndarray):
        return (
            [json_value(one) for one in value] if value.dtype.hasobject or value.dtype.kind == "S" else value.tolist()
        )
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.item() if isinstance(value, np.generic) else value
