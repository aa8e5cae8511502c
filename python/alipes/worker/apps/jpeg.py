"""What a JPEG file asks of Pillow beside its pixels, and the bounds on it.

A file of few pixels may hold ten thousand scans, each of which goes through the whole picture, or megabytes between
its segments, through which Pillow goes byte by byte. Both keep an instance for minutes, which no limit of pixels sees.
"""

from __future__ import annotations

import re
from typing import Final

from alipes.worker.apps.misfit import TOO_LARGE, Misfit

__all__ = ["MAX_LOOSE_BYTES", "MAX_SCANS", "MAX_SEGMENTS", "check_jpeg"]

MAX_SCANS: Final = 100
"""Most scans: encoders write about ten, and the backend `picture` reads as many."""

MAX_SEGMENTS: Final = 4096
"""Most segments: a colour profile and an extended block of XMP take some hundred each, of 64 KB."""

MAX_LOOSE_BYTES: Final = 64 << 10
"""Most bytes between segments: fill bytes, which the format allows in any number, and what is no segment at all."""

_SEGMENT: Final = re.compile(rb"\xff[\x01-\xfe]")
"""A marker; fill bytes may stand in front of it."""

_BEHIND_SCAN: Final = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
"""The marker that ends the data of a scan, where neither stuffed bytes nor markers of restarts do."""

_FILL: Final = b"\xff" * (MAX_LOOSE_BYTES + 1)
"""More fill bytes than may stand in one place."""

_ALONE: Final = frozenset((0x01, *range(0xD0, 0xD9)))
"""Markers that no length follows."""

_SCAN: Final = 0xDA
_END: Final = 0xD9


def check_jpeg(data: bytes) -> None:
    """Checks what a JPEG file asks for; passes files of any other kind, and whatever a reader refuses by itself.

    Raises:
        Misfit: It has more scans, segments or bytes between them than the limits.
    """
    if not data.startswith(b"\xff\xd8"):
        return
    # Within a scan, too: Pillow keeps what its decoder does not take, and copies it for each 64 KB that it reads.
    _check("bytes between its segments", MAX_LOOSE_BYTES + 1 if _FILL in data else 0, MAX_LOOSE_BYTES)
    at, scans, segments, loose = 2, 0, 0, 0
    while found := _SEGMENT.search(data, at, at + MAX_LOOSE_BYTES + 2):
        marker = data[found.end() - 1]
        loose += found.start() - at
        segments += 1
        scans += marker == _SCAN
        _check("scans", scans, MAX_SCANS)
        _check("segments", segments, MAX_SEGMENTS)
        _check("bytes between its segments", loose, MAX_LOOSE_BYTES)
        if marker == _END:
            return
        at = found.end() + (0 if marker in _ALONE else int.from_bytes(data[found.end() : found.end() + 2], "big"))
        if marker == _SCAN:
            behind = _BEHIND_SCAN.search(data, at)
            at = len(data) if behind is None else behind.start()
    _check("bytes between its segments", loose + max(0, len(data) - at), MAX_LOOSE_BYTES)


def _check(what: str, count: int, limit: int) -> None:
    if count > limit:
        raise Misfit(f"the picture is a JPEG file with more than {limit} {what}", status=TOO_LARGE)
