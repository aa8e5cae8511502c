"""Answers, compared with what the data says that they have to be."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np

from alipes.compat.perf_analyzer.data_values import lengths_and_texts
from alipes.compat.perf_analyzer.dataset import Step
from alipes.compat.perf_analyzer.model import Model

__all__ = ["AnswerCheck"]

_MISMATCH: Final = "Output doesn't match expected output"


class AnswerCheck:
    """Compares answers, byte by byte where they are binary."""

    def __init__(self, model: Model, expected: Sequence[Step], wire: Literal["http", "grpc", "stream"]) -> None:
        """Takes what each request has to be answered with."""
        self._model = model
        self._expected = expected
        self._outputs = {"http": _http_outputs, "grpc": _grpc_outputs, "stream": _stream_outputs}[wire]

    def __call__(self, samples: Sequence[tuple[int, bytes]]) -> str:
        """What is wrong with the first bad answer; empty where all are good."""
        for number, answer in samples:
            expected = self._expected[number % len(self._expected)]
            if expected and (wrong := self._compare(expected, self._outputs(answer))):
                return wrong
        return ""

    def _compare(self, expected: Step, outputs: Mapping[str, bytes | list[Any]]) -> str:
        for name, array in expected.items():
            if name not in outputs:
                return f"missing output '{name}', which the validation data has"
            seen = outputs[name]
            if isinstance(seen, bytes):
                is_same = _same_bytes(array, seen)
            else:
                is_same = array.size == len(seen) and [_plain(element) for element in array.flat] == seen
            if not is_same:
                return _MISMATCH
        return ""


def _plain(element: Any) -> Any:
    """An element as JSON has it."""
    return element.decode(errors="replace") if isinstance(element, bytes) else element.item()


def _same_bytes(array: np.ndarray[Any, Any], seen: bytes) -> bool:
    if array.dtype.kind == "O":
        return lengths_and_texts(seen, array.size) == list(array.flat)
    return np.ascontiguousarray(array).tobytes() == seen


def _http_outputs(answer: bytes) -> dict[str, bytes | list[Any]]:
    """The outputs of a body: JSON, with binary tensors behind it."""
    head, end = json.JSONDecoder().raw_decode(answer.decode("latin-1"))
    outputs: dict[str, bytes | list[Any]] = {}
    for output in head.get("outputs", ()):
        size = output.get("parameters", {}).get("binary_data_size")
        if size is None:
            outputs[output["name"]] = output.get("data", [])
            continue
        outputs[output["name"]] = answer[end : end + size]
        end += size
    return outputs


def _grpc_outputs(answer: bytes) -> dict[str, bytes | list[Any]]:
    """The outputs of a message."""
    from alipes.client.grpc_messages import decode_response

    return _raw_outputs(decode_response("ModelInfer", answer))


def _stream_outputs(answer: bytes) -> dict[str, bytes | list[Any]]:
    """The outputs of a message of a stream."""
    from alipes.client.grpc_messages import decode_response

    return _raw_outputs(decode_response("ModelStreamInfer", answer).infer_response)


def _raw_outputs(message: Any) -> dict[str, bytes | list[Any]]:
    return {output.name: raw for output, raw in zip(message.outputs, message.raw_output_contents, strict=False)}
