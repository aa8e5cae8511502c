"""Arrays and what stands beside them as bytes: what goes between a server's stand-in for a model and its script.

A message is the length of a JSON document, the document, and the arrays one after the other. Nothing is pickled.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from alipes.datatypes import pack_texts

__all__ = ["MOST_BYTES", "Arrays", "receive", "send"]

Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]

MOST_BYTES: Final = 2**31 - 1
"""The largest message; a length above it is not believed."""

_LENGTH: Final = struct.Struct("<I")


def send(connection: Connection, document: Mapping[str, Any], arrays: Sequence[Arrays] = ()) -> None:
    """Send a document, and arrays by name for each of its requests or responses.

    Raises:
        ValueError: If the message is too large.
        OSError: If the other end is gone.
    """
    tensors: list[Any] = []
    contents: list[bytes] = []
    for one in arrays:
        packed = {name: _bytes(array) for name, array in one.items()}
        tensors.append([[name, _kind(one[name]), list(one[name].shape), len(packed[name])] for name in one])
        contents += packed.values()
    head = json.dumps({**document, "tensors": tensors}).encode()
    message = b"".join([_LENGTH.pack(len(head)), head, *contents])
    if len(message) > MOST_BYTES:
        raise ValueError(f"a message of {len(message)} bytes cannot go to the other process: at most {MOST_BYTES} can")
    connection.send_bytes(message)


def receive(connection: Connection) -> tuple[dict[str, Any], list[dict[str, npt.NDArray[Any]]]]:
    """The next document, and its arrays.

    Raises:
        EOFError: If the other end is gone.
        OSError: If the other end is gone, or the message is too large.
        ValueError: If the message is none.
    """
    message = memoryview(connection.recv_bytes(MOST_BYTES))
    try:
        return _read(message)
    except (AttributeError, KeyError, TypeError, struct.error) as error:
        raise ValueError(f"{len(message)} bytes from the other process are no message: {error!r}") from error


def _read(message: memoryview) -> tuple[dict[str, Any], list[dict[str, npt.NDArray[Any]]]]:
    (length,) = _LENGTH.unpack_from(message)
    place = _LENGTH.size + length
    document = json.loads(bytes(message[_LENGTH.size : place]))
    arrays: list[dict[str, npt.NDArray[Any]]] = []
    for tensors in document.pop("tensors"):
        arrays.append({})
        for name, kind, shape, size in tensors:
            arrays[-1][name] = _array(message[place : place + size], kind, shape)
            place += size
    return document, arrays


def _kind(array: npt.NDArray[Any]) -> str:
    return "BYTES" if array.dtype.kind == "O" else array.dtype.str


def _bytes(array: npt.NDArray[Any]) -> bytes:
    if array.dtype.kind != "O":
        return np.ascontiguousarray(array).tobytes()
    return pack_texts(array.ravel().tolist())


def _array(content: memoryview, kind: str, shape: Sequence[int]) -> npt.NDArray[Any]:
    if kind != "BYTES":
        return np.frombuffer(content, np.dtype(kind)).reshape(shape)
    elements, place = [], 0
    while place < len(content):
        (length,) = _LENGTH.unpack_from(content, place)
        place += _LENGTH.size
        elements.append(bytes(content[place : place + length]))
        place += length
    array = np.empty(len(elements), np.object_)
    array[:] = elements
    return array.reshape(shape)
