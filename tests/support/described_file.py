"""An ONNX file of which only the signature is known, for tests without an engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np


class DescribedFile:
    """Stands in for `alipes._core.OnnxProbe` where no engine is needed: each row of an output is that row's own."""

    def __init__(self, text: str) -> None:
        self._text = text

    def signature(self) -> str:
        return self._text

    def run(self, inputs: Sequence[tuple[Sequence[int], bytes]]) -> list[tuple[str, list[int], bytes]]:
        (rows, *_), data = inputs[0]
        heads = np.frombuffer(data, "u1").reshape(rows, -1)[:, :1].astype("u1") % 2
        found = []
        for port in json.loads(self._text)["outputs"]:
            shape = [rows, *(3 if size < 0 else size for size in port["shape"][1:])]
            values = np.repeat(heads, int(np.prod(shape[1:])), axis=1)
            found.append(_output(port["datatype"], shape, values))
        return found


def _output(datatype: str, shape: list[int], values: np.ndarray) -> tuple[str, list[int], bytes]:
    if datatype == "BYTES":
        return datatype, shape, b"\1\0\0\0a" * values.size
    width = {"BOOL": "?", "BF16": "u2", "FP16": "f2", "FP32": "f4", "FP64": "f8"}.get(datatype, datatype.lower())
    return datatype, shape, values.astype(width).tobytes()


def opening(describe: Callable[[str, str], str]) -> Callable[[str, str], DescribedFile]:
    """What opens files as `alipes._core.OnnxProbe` does, by what describes them."""
    return lambda library, path: DescribedFile(describe(library, path))
