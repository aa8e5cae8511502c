"""The golden JSON vectors mean to Python what they mean to the Rust codec."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden.bodies import NUMPY_TYPES
from tritonclient.http import InferResult

VECTORS = Path(__file__).parents[1] / "vectors" / "json"

# Where Python's own reader follows other rules than RapidJSON.
PYTHON_DIFFERS = {
    "a byte order mark in front and a zero byte behind": "Python takes neither",
    "NaN and infinities are numbers": "Python does not know the short form `Inf`",
    "a member that is given twice counts once": "of two members Python takes the last, RapidJSON the first",
}


def _vectors(name: str, key: str) -> list[Any]:
    vectors = json.loads((VECTORS / name).read_text())
    return [pytest.param(vector, id=vector["fact"]) for vector in vectors if key in vector]


def _flat(data: Any) -> list[Any]:
    return [value for item in data for value in _flat(item)] if isinstance(data, list) else [data]


def _packed(datatype: str, data: Any) -> bytes:
    values = _flat(data)
    if datatype == "BYTES":
        return _lengths_and_texts([value.encode() for value in values])
    kind = np.dtype(NUMPY_TYPES[datatype])
    if kind.kind in "iu":  # numbers too large for the type lose their upper bits, as in Triton
        return b"".join((value % (1 << 8 * kind.itemsize)).to_bytes(kind.itemsize, "little") for value in values)
    with np.errstate(over="ignore"):
        return np.array(values, np.float64 if kind.kind == "f" else kind).astype(kind).tobytes()


def _lengths_and_texts(texts: list[bytes]) -> bytes:
    return b"".join(struct.pack("<I", len(text)) + text for text in texts)


@pytest.mark.parametrize("vector", _vectors("requests.json", "request"))
def test_a_request_means_the_same_to_an_independent_reader(vector: dict[str, Any]) -> None:
    if "json_hex" in vector:
        pytest.skip("strings of any bytes: Python's reader takes UTF-8 alone")
    if reason := PYTHON_DIFFERS.get(vector["fact"]):
        pytest.skip(reason)
    document = json.loads(vector["json"])
    tail = bytes.fromhex(vector.get("tail", ""))
    expected = vector["request"]
    assert [tensor["name"] for tensor in expected["inputs"]] == [tensor["name"] for tensor in document["inputs"]]
    for tensor, meaning in zip(document["inputs"], expected["inputs"], strict=True):
        size = tensor.get("parameters", {}).get("binary_data_size")
        data, tail = (tail[:size], tail[size:]) if size is not None else (None, tail)
        if data is None:
            data = b"" if 0 in tensor["shape"] else _packed(tensor["datatype"], tensor["data"])
        assert (meaning["datatype"], meaning["shape"]) == (tensor["datatype"], tensor["shape"])
        assert meaning["data"] == data.hex()
    assert tail == b""


def _as_numbers(value: Any) -> Any:
    """NaN is equal to itself here."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


@pytest.mark.parametrize("vector", _vectors("responses.json", "response"))
def test_a_response_means_the_same_to_tritons_client(vector: dict[str, Any]) -> None:
    if "error" in vector or "json_hex" in vector:
        pytest.skip("not for a client: the answer is an error, or its strings are no UTF-8")
    head = vector["json"].encode()
    tail = b"".join(bytes.fromhex(piece) for piece in vector.get("tail", []))
    length = len(head) if "tail" in vector else None
    result = InferResult.from_response_body(head + tail, header_length=length)
    for meaning in vector["response"]["outputs"]:
        array = result.as_numpy(meaning["name"])
        output = result.get_output(meaning["name"])
        assert list(output["shape"]) == meaning["shape"]
        if meaning["datatype"] == "BYTES":
            texts = [text.encode() if isinstance(text, str) else text for text in array.flatten()]
            assert _lengths_and_texts(texts).hex() == meaning["data"]
        elif meaning["datatype"] in NUMPY_TYPES:
            expected = np.frombuffer(bytes.fromhex(meaning["data"]), NUMPY_TYPES[meaning["datatype"]])
            assert [_as_numbers(value) for value in array.flatten().tolist()] == [
                _as_numbers(value) for value in expected.tolist()
            ]
        else:
            assert array.nbytes == len(bytes.fromhex(meaning["data"]))
