"""When a frame is of, by the name of its file."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

__all__ = ["FrameName", "frame_name"]

_SPAN: Final = re.compile(r"(?:^|-)(\d+)-([1-9]\d*)$")
"""Start and duration, as in `H1_STRAIN-1262304000-1`. Source: LIGO-T010150, names of frame files."""
_NUMBER: Final = re.compile(r"\d+")


class FrameName(NamedTuple):
    """The place of a frame in its stream.

    Attributes:
        number: Its number, or when it begins.
        step: How much greater the next one's is.
        file: The name of the file.
    """

    number: int
    step: int
    file: str


def frame_name(file: str) -> FrameName | None:
    """The place of a frame; `None` where the name of its file has no number.

    Names that end in a start and a duration step by the duration. Of others the last number counts, and steps by one.
    """
    stem = file.rsplit(".", 1)[0]
    span = _SPAN.search(stem)
    if span is not None:
        return FrameName(int(span[1]), int(span[2]), file)
    numbers = _NUMBER.findall(stem)
    return FrameName(int(numbers[-1]), 1, file) if numbers else None
