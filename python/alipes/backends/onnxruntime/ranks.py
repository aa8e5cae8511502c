"""Which inputs an ONNX file gives no shape: ONNX Runtime tells of them as it tells of single numbers.

Source: the messages `ModelProto`, `GraphProto`, `ValueInfoProto` and `TypeProto` of onnx.proto. Only their keys are
read, so that the weights, which may be gigabytes, are passed over.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["inputs_without_shape"]

_MODEL_GRAPH: Final = 7
_GRAPH_INPUT: Final = 11
_VALUE_NAME, _VALUE_TYPE = 1, 2
_TYPE_TENSOR: Final = 1
_TENSOR_SHAPE: Final = 2

_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
"""How a field is written, as the last three bits of its key say."""

_MOST_VARINT_BYTES: Final = 10

Span = tuple[int, int]
"""Where bytes of the file begin and end."""


def inputs_without_shape(file: Path) -> list[str]:
    """Names of inputs of which the file does not even say how many dimensions they have.

    Args:
        file: The model's file, which ONNX Runtime has read.

    Raises:
        OSError: If it cannot be read.
    """
    if not file.stat().st_size:
        return []
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return [
            "".join(data[start:end].decode(errors="replace") for start, end in _spans(data, value, _VALUE_NAME))
            for graph in _spans(data, (0, len(data)), _MODEL_GRAPH)
            for value in _spans(data, graph, _GRAPH_INPUT)
            if not _has_shape(data, value)
        ]


def _has_shape(data: mmap.mmap, value: Span) -> bool:
    return any(
        True
        for kind in _spans(data, value, _VALUE_TYPE)
        for tensor in _spans(data, kind, _TYPE_TENSOR)
        for _ in _spans(data, tensor, _TENSOR_SHAPE)
    )


def _spans(data: mmap.mmap, within: Span, number: int) -> Iterator[Span]:
    """Where the contents of each field of a number lie in a message; ends where the message is none."""
    at, end = within
    while at < end:
        key, at = _varint(data, at)
        wire = key & 7
        if wire == _BYTES:
            size, at = _varint(data, at)
            if at + size > end:
                return
            if key >> 3 == number:
                yield at, at + size
            at += size
        elif wire == _VARINT:
            _, at = _varint(data, at)
        elif wire in (_EIGHT_BYTES, _FOUR_BYTES):
            at += 8 if wire == _EIGHT_BYTES else 4
        else:
            return


def _varint(data: mmap.mmap, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, and where it ends."""
    number = 0
    for place in range(_MOST_VARINT_BYTES):
        if at + place >= len(data):
            return number, len(data)
        byte = data[at + place]
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return number, at + place + 1
    return number, len(data)
