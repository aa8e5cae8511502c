"""Answers, checked by sampling: against expected outputs, or equal requests against each other."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from alipes.datatypes import array_type, unpack_texts
from alipes.errors import ConfigError

__all__ = ["Check", "Checker", "read_outputs"]

Wire: TypeAlias = Literal["http", "grpc", "stream"]
"""How an answer came: over HTTP, as a message of gRPC, or as one of a stream of gRPC."""
Outputs: TypeAlias = Mapping[str, "np.ndarray[Any, Any]"]
"""Tensors by name; an answer that has none is one output without a name."""

_WHOLE: Final = ""


@dataclass(frozen=True)
class Check:
    """How answers are checked.

    Attributes:
        expected: Outputs by name, whose first axis is that of the requests, in turn. Without, equal requests have to
            get equal answers.
        relative: How far a floating-point number may be off, as a share of the expected one.
        absolute: How far it may be off as a number.
        samples: Answers of a window that are checked, for each thread.
    """

    expected: Outputs | None = None
    relative: float = 1e-4
    absolute: float = 1e-6
    samples: int = 64

    def __post_init__(self) -> None:
        """Checks the arrays.

        Raises:
            ConfigError: If they have different numbers of requests.
        """
        if self.expected is not None and len({len(array) for array in self.expected.values()} - {0}) != 1:
            lengths = {name: len(array) for name, array in self.expected.items()}
            raise ConfigError(f"the expected outputs are of different numbers of requests, or none: {lengths}")


class Checker:
    """Checks the answers of a load test, window by window."""

    def __init__(self, how: Check, wire: Wire) -> None:
        """Has seen no answer yet."""
        self._how = how
        self._wire = wire
        self._seen: dict[int, Outputs] = {}

    def check(self, samples: Iterable[tuple[int, bytes]]) -> tuple[int, Mapping[str, int]]:
        """How many answers there were, and what was wrong with some.

        Args:
            samples: Which request, and its answer as it came.
        """
        wrong: Counter[str] = Counter()
        count = 0
        for request, answer in samples:
            count += 1
            if text := self._wrong_with(request, answer):
                wrong[text] += 1
        return count, wrong

    def _wrong_with(self, request: int, answer: bytes) -> str:
        try:
            outputs = read_outputs(answer, self._wire)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            return f"it cannot be read: {error}"
        expected = self._expected(request, outputs)
        if missing := expected.keys() - outputs.keys():
            return f"output '{min(missing)}' is missing"
        for name, tensor in expected.items():
            if text := self._difference(tensor, outputs[name]):
                which = f"output '{name}'" if name else "the answer"
                return f"{which} of request {request} {text}"
        return ""

    def _expected(self, request: int, outputs: Outputs) -> Outputs:
        if self._how.expected is None:
            return self._seen.setdefault(request, outputs)
        return {name: array[request % len(array)] for name, array in self._how.expected.items()}

    def _difference(self, expected: np.ndarray[Any, Any], seen: np.ndarray[Any, Any]) -> str:
        if expected.size != seen.size:
            return f"has the shape {list(seen.shape)}, not {list(expected.shape)}"
        expected, seen = expected.ravel(), seen.ravel()
        if expected.dtype.kind == "f" and seen.dtype.kind == "f":
            limits = {"rtol": self._how.relative, "atol": self._how.absolute}
            is_same = np.isclose(seen.astype(np.float64), expected.astype(np.float64), equal_nan=True, **limits)
        else:
            is_same = np.array([_plain(one) == _plain(other) for one, other in zip(expected, seen, strict=True)], bool)
        if is_same.all():
            return ""
        place = int(np.argmin(is_same))
        return f"is {_plain(seen[place])!r:.60}, not {_plain(expected[place])!r:.60}, at element {place}"


def read_outputs(answer: bytes, wire: Wire) -> Outputs:
    """The outputs of an answer as it came; one without a name where it is no inference response.

    Raises:
        ValueError: If it is one, and broken.
    """
    if wire == "http":
        return _http_outputs(answer)
    return _grpc_outputs(answer, "ModelInfer" if wire == "grpc" else "ModelStreamInfer")


def _http_outputs(answer: bytes) -> Outputs:
    """JSON, and binary tensors behind it."""
    try:
        text = answer.decode("utf-8", "surrogateescape")
        head, length = json.JSONDecoder().raw_decode(text)
        described = head["outputs"]
        end = len(_encoded(text[:length]))
    except (ValueError, KeyError, TypeError):
        return {_WHOLE: np.array([answer], np.object_)}
    outputs = {}
    for output in described:
        size = output.get("parameters", {}).get("binary_data_size")
        if size is None:
            elements = [_encoded(one) if isinstance(one, str) else one for one in _flat(output["data"])]
            outputs[output["name"]] = np.array(elements, array_type(output["datatype"])).reshape(output["shape"])
        else:
            raw = answer[end : end + size]
            outputs[output["name"]] = _tensor(raw, output["datatype"]).reshape(output["shape"])
            end += size
    return outputs


def _grpc_outputs(answer: bytes, method: str) -> Outputs:
    from google.protobuf.message import DecodeError

    from alipes.client.grpc_messages import decode_response

    try:
        decoded = decode_response(method, answer)
    except DecodeError as error:
        raise ValueError(f"{error}") from error
    message = decoded.infer_response if method == "ModelStreamInfer" else decoded
    raw = list(message.raw_output_contents)
    tensors = {}
    for place, output in enumerate(message.outputs):
        # A server sends all of them raw, or none.
        tensor = _tensor(raw[place], output.datatype) if raw else _contents(output)
        tensors[output.name] = tensor.reshape(list(output.shape))
    return tensors


def _contents(output: Any) -> np.ndarray[Any, Any]:
    fields = output.contents.ListFields()
    elements = list(fields[0][1]) if fields else []
    return np.array(elements, array_type(output.datatype))


def _tensor(raw: bytes, datatype: str) -> np.ndarray[Any, Any]:
    if datatype != "BYTES":
        return np.frombuffer(raw, np.uint16 if datatype == "BF16" else array_type(datatype))
    return np.array(unpack_texts(raw), np.object_)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _flat(data: Any) -> list[Any]:
    """JSON may nest the elements by rows."""
    return [element for part in data for element in _flat(part)] if isinstance(data, list) else [data]


def _plain(element: Any) -> Any:
    """An element as it can be compared: texts are bytes."""
    if isinstance(element, str):
        return element.encode()
    return element.item() if isinstance(element, np.generic) else element
