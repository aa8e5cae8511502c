"""A tensor of a document of data: a flat list, text in base64, or one of both with its shape."""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from alipes.compat.perf_analyzer.dataset import Array
from alipes.compat.perf_analyzer.failures import Failed
from alipes.compat.perf_analyzer.model import Port

__all__ = ["TensorReader", "lengths_and_texts"]

_WORDS: Final = {
    "BOOL": "bool",
    "BYTES": "string",
    "FP32": "float",
    "FP64": "fp64",
    **{f"{sign}INT{bits}": f"{sign.lower()}int{bits}_t" for sign in ("", "U") for bits in (8, 16, 32, 64)},
}
"""Datatype -> what the original calls its elements."""
_LENGTH_BYTES: Final = 4


class TensorReader:
    """Reads tensors for a model.

    Attributes:
        shapes: By name: sizes that the model leaves open.
    """

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Takes the shapes."""
        self.shapes = shapes

    def read(self, port: Port, value: object, place: str) -> Array:
        """The tensor of a value.

        Args:
            port: The input or output.
            value: As the document has it.
            place: Where it stands there, for messages.

        Raises:
            Failed: If it is no tensor of this kind.
        """
        shape: tuple[int, ...] | None = None
        if isinstance(value, dict):
            shape = _shape(value.get("shape"), place) if "shape" in value else None
            if "b64" not in value:
                if "content" not in value:
                    raise _failed(f"missing content field. {place}")
                value = value["content"]
        whole = self._whole_shape(port, shape)
        if isinstance(value, dict) and "b64" in value:
            return _from_base64(port, value["b64"], whole, place)
        if isinstance(value, list):
            return _from_list(port, value, whole)
        raise _failed(f"The tensor values are not supported. Expected an array or b64 string {place}")

    def _whole_shape(self, port: Port, supplied: tuple[int, ...] | None) -> tuple[int, ...]:
        declared = port.shape
        if min(declared, default=1) < 0 and port.name in self.shapes:
            declared = self.shapes[port.name]
        if supplied is None:
            if min(declared, default=1) < 0:
                raise _failed(
                    f'The variable-sized tensor "{port.name}" with model shape {_text(declared)} needs to have its '
                    "shape fully defined. See the --shape option."
                )
            return declared
        if len(supplied) != len(declared) or any(
            size not in (-1, own) for own, size in zip(supplied, declared, strict=True)
        ):
            raise _failed(
                f'The supplied shape of {_text(supplied)} for input "{port.name}" is incompatible with the model\'s '
                f"input shape of {_text(declared)}"
            )
        return supplied


def lengths_and_texts(content: bytes, count: int) -> list[bytes]:
    """The elements of text behind their lengths, as the protocol has them; none where these are not `count` of them."""
    elements, place = list[bytes](), 0
    while place + _LENGTH_BYTES <= len(content) and len(elements) < count:
        (length,) = struct.unpack_from("<I", content, place)
        place += _LENGTH_BYTES + length
        elements.append(content[place - length : place])
    return elements if place == len(content) and len(elements) == count else []


def _shape(value: object, place: str) -> tuple[int, ...]:
    if not isinstance(value, list) or any(type(size) is not int for size in value):
        raise _failed("shape values must be integers.")
    if min(value, default=0) < 0:
        raise _failed(f"shape values must be 0 or more. {place}")
    return tuple(value)


def _from_base64(port: Port, text: object, shape: tuple[int, ...], place: str) -> Array:
    if not isinstance(text, str):
        raise _failed(f"the value of b64 field should be of type string {place}")
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _failed(f"the value of b64 field is no base64: {error} {place}") from error
    count = math.prod(shape)
    if port.spec.datatype == "BYTES":
        return _texts(port, lengths_and_texts(content, count), shape)
    # The halves of BF16 are sent as they are.
    dtype = np.dtype(np.uint16) if port.spec.datatype == "BF16" else port.spec.dtype
    _check_size(port, count * dtype.itemsize, len(content))
    return np.frombuffer(content, dtype).reshape(shape)


def _from_list(port: Port, values: list[Any], shape: tuple[int, ...]) -> Array:
    elements = list(_flat(values))
    if port.spec.datatype == "BYTES":
        if not all(isinstance(element, str) for element in elements):
            raise _mistyped(port)
        return _texts(port, [element.encode() for element in elements], shape)
    dtype = port.spec.dtype
    kinds = (bool,) if dtype.kind == "b" else (int, float) if dtype.kind == "f" else (int,)
    fits_bool = dtype.kind == "b"
    if any(not isinstance(element, kinds) or (isinstance(element, bool) and not fits_bool) for element in elements):
        raise _mistyped(port)
    _check_size(port, math.prod(shape) * dtype.itemsize, len(elements) * dtype.itemsize)
    try:
        return np.array(elements, dtype).reshape(shape)
    except (OverflowError, ValueError) as error:
        raise _failed(f"{port.name} takes {port.spec.datatype}: {error}") from error


def _flat(values: Sequence[Any]) -> Any:
    for value in values:
        if isinstance(value, list):
            yield from _flat(value)
        else:
            yield value


def _texts(port: Port, elements: Sequence[bytes], shape: tuple[int, ...]) -> Array:
    if len(elements) != math.prod(shape):
        raise _failed(f"provided data for input {port.name} has {len(elements)} elements, expect {math.prod(shape)}")
    array = np.empty(len(elements), np.object_)
    array[:] = elements
    return array.reshape(shape)


def _check_size(port: Port, expected: int, got: int) -> None:
    if expected != got:
        raise _failed(f"mismatch in the data provided for {port.name}. Expected: {expected} bytes, Got: {got} bytes")


def _mistyped(port: Port) -> Failed:
    return _failed(f"unable to find {_WORDS.get(port.spec.datatype, port.spec.datatype)} data in json")


def _text(shape: Sequence[int]) -> str:
    return f"[{','.join(map(str, shape))}]"


def _failed(message: str) -> Failed:
    return Failed(f"error: Failed to init manager inputs: {message}\n")
