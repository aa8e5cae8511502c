"""Reads metrics in Prometheus' text format: any order of labels, any way to write a number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["Sample", "samples"]

_LINE: Final = re.compile(r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+-?\d+)?\s*")
_LABEL: Final = re.compile(r'\s*(?P<name>[a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"(?P<value>(?:[^"\\]|\\.)*)"\s*(?:,|$)')
_ESCAPED: Final = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class Sample:
    """One value.

    Attributes:
        name: Name of the metric.
        labels: The labels of this value.
        value: The value, as a float whatever the server wrote.
    """

    name: str
    labels: Mapping[str, str]
    value: float


def samples(page: str) -> Iterator[Sample]:
    """The values of a page, in order. A line that is none, such as a comment, is passed over."""
    for line in page.splitlines():
        match = _LINE.fullmatch(line) if line[:1] not in ("", "#") else None
        if match is not None and (value := _number(match["value"])) is not None:
            yield Sample(match["name"], _labels(match["labels"] or ""), value)


def _labels(text: str) -> dict[str, str]:
    return {match["name"]: _ESCAPED.sub(_unescaped, match["value"]) for match in _LABEL.finditer(text)}


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]


def _number(text: str) -> float | None:
    try:
        return float(text)  # `NaN`, `+Inf` and `7038.000000` are numbers here too
    except ValueError:
        return None
