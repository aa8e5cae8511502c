"""Bodies: from a description to the bytes that are sent, from the bytes that came back to a description."""

from __future__ import annotations

import base64
import gzip
import json
import re
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

NUMPY_TYPES = {
    "BOOL": "?",
    "UINT8": "u1",
    "UINT16": "<u2",
    "UINT32": "<u4",
    "UINT64": "<u8",
    "INT8": "i1",
    "INT16": "<i2",
    "INT32": "<i4",
    "INT64": "<i8",
    "FP16": "<f2",
    "FP32": "<f4",
    "FP64": "<f8",
}

# Not JSON, although Python reads them: such a body is described as text.
_NOT_JSON = re.compile(r"\b(NaN|Infinity)\b")


def encode(body: Mapping[str, Any] | None) -> bytes:
    """The bytes that a description stands for."""
    if body is None:
        return b""
    ((kind, value),) = body.items()
    return _ENCODERS[kind](value)


def describe(raw: bytes, headers: Mapping[str, str]) -> dict[str, Any] | None:
    """The description of a body that came back with ``headers``, whose names are in lower case."""
    if not raw:
        return None
    raw = _expanded(raw, headers)
    if headers.get("content-type", "").startswith("text/event-stream"):
        return {"events": [_event(event) for event in raw.decode().removesuffix("\n\n").split("\n\n")]}
    if (split := headers.get("inference-header-content-length")) is not None:
        tail = base64.b64encode(raw[int(split) :]).decode()
        return {"json": json.loads(raw[: int(split)]), "tail": {"base64": tail}}
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(raw).decode()}
    value = _document(text)
    return {"text": text} if value is None else {"json": value}


def verbatim(raw: bytes, headers: Mapping[str, str]) -> dict[str, Any] | None:
    """The JSON part of a body, character by character."""
    split = int(headers.get("inference-header-content-length", len(raw)))
    return {"text": raw[:split].decode()} if raw else None


def _expanded(raw: bytes, headers: Mapping[str, str]) -> bytes:
    """The body without its compression; one that is not compressed as its header says is an error."""
    match headers.get("content-encoding"):
        case "gzip":
            return gzip.decompress(raw)
        case "deflate":
            return zlib.decompress(raw)
        case _:
            return raw


def _event(text: str) -> Any:
    """The document of a server-sent event."""
    return json.loads(text.removeprefix("data: ")) if text.startswith("data: ") else {"unparsed": text}


def _document(text: str) -> Any:
    """The JSON object or array that ``text`` is, or None."""
    if _NOT_JSON.search(text):
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, (dict, list)) else None


def _tensor(value: tuple[str, Sequence[Any]]) -> bytes:
    datatype, elements = value
    if datatype == "BYTES":
        strings = [element.encode() for element in elements]
        return b"".join(struct.pack("<I", len(string)) + string for string in strings)
    if datatype == "BF16":
        upper_halves = np.asarray(elements, "<f4").view("<u4") >> 16
        return upper_halves.astype("<u2").tobytes()
    return np.array(elements, NUMPY_TYPES[datatype]).tobytes()


# The recording sent exactly this JSON text: content lengths in the scenarios count its bytes.
_ENCODERS: dict[str, Callable[[Any], bytes]] = {
    "json": lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(),
    "text": lambda value: str(value).encode(),
    "hex": bytes.fromhex,
    "gzip": lambda value: gzip.compress(encode(value), mtime=0),
    "deflate": lambda value: zlib.compress(encode(value)),
    "tensor": _tensor,
    "repeat": lambda value: encode(value[0]) * int(value[1]),
    "parts": lambda value: b"".join(encode(part) for part in value),
}
