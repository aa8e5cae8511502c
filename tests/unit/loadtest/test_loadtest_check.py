"""Answers that are checked."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from alipes import ConfigError
from alipes.client.grpc_messages import decode_response
from alipes.loadtest import Check
from alipes.loadtest.check import Checker, read_outputs


def in_json(datatype: str, shape: list[int], data: list[Any], name: str = "Y") -> bytes:
    output = {"name": name, "datatype": datatype, "shape": shape, "data": data}
    return json.dumps({"model_name": "m", "outputs": [output]}).encode()


def in_binary(datatype: str, shape: list[int], raw: bytes) -> bytes:
    output = {"name": "Y", "datatype": datatype, "shape": shape, "parameters": {"binary_data_size": len(raw)}}
    return json.dumps({"outputs": [output], "note": "grün"}, ensure_ascii=False).encode() + raw


def in_grpc(datatype: str, shape: list[int], raw: bytes = b"", **contents: list[Any]) -> bytes:
    message = decode_response("ModelInfer", b"")
    output = message.outputs.add(name="Y", datatype=datatype, shape=shape)
    for name, elements in contents.items():
        getattr(output.contents, name).extend(elements)
    if raw:
        message.raw_output_contents.append(raw)
    whole: bytes = message.SerializeToString()
    return whole


NUMBERS = np.array([[1.5, -2.0, 0.25]], np.float32)
TEXTS = b"\x02\x00\x00\x00ab\x00\x00\x00\x00\x02\x00\x00\x00\xc3\xbc"


@pytest.mark.parametrize(
    ("answer", "wire"),
    [
        (in_json("FP32", [1, 3], NUMBERS.tolist()), "http"),
        (in_json("FP32", [1, 3], NUMBERS.ravel().tolist()), "http"),
        (in_binary("FP32", [1, 3], NUMBERS.tobytes()), "http"),
        (in_grpc("FP32", [1, 3], NUMBERS.tobytes()), "grpc"),
        (in_grpc("FP32", [1, 3], fp32_contents=NUMBERS.ravel().tolist()), "grpc"),
    ],
    ids=["rows", "flat", "binary", "raw", "contents"],
)
def test_numbers_are_read_however_they_travel(answer: bytes, wire: Any) -> None:
    outputs = read_outputs(answer, wire)
    assert outputs["Y"].dtype == np.float32
    np.testing.assert_array_equal(outputs["Y"], NUMBERS)


@pytest.mark.parametrize(
    ("answer", "wire"),
    [
        (in_json("BYTES", [3], ["ab", "", "ü"]), "http"),
        (in_binary("BYTES", [3], TEXTS), "http"),
        (in_grpc("BYTES", [3], TEXTS), "grpc"),
    ],
    ids=["json", "binary", "raw"],
)
def test_texts_are_read_however_they_travel(answer: bytes, wire: Any) -> None:
    assert list(read_outputs(answer, wire)["Y"]) == [b"ab", b"", "ü".encode()]


def test_equal_requests_get_equal_answers() -> None:
    checker = Checker(Check(), "http")
    good, other = in_json("FP32", [2], [1, 2]), in_json("FP32", [2], [1, 2.0001])
    assert checker.check([(0, good), (1, other), (0, good)]) == (3, {})
    wrong = in_json("FP32", [2], [1, 2.1])
    assert checker.check([(0, other), (1, other), (0, wrong)]) == (
        3,
        {"output 'Y' of request 0 is 2.0999999046325684, not 2.0, at element 1": 1},
    )


def test_answers_are_those_that_are_expected() -> None:
    checker = Checker(Check({"Y": np.array([[1, 2], [3, 4]], np.float32)}), "http")
    samples = [(0, in_json("FP32", [1, 2], [1, 2])), (1, in_json("FP32", [1, 2], [3, 4]))]
    assert checker.check([*samples, (2, samples[0][1])]) == (3, {})
    assert checker.check([(1, samples[0][1])])[1] == {"output 'Y' of request 1 is 1.0, not 3.0, at element 0": 1}


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (in_json("FP32", [1], [1]), "output 'Y' of request 0 has the shape [1], not [2]"),
        (in_json("FP32", [2], [1, 2], "Z"), "output 'Y' is missing"),
        (in_json("FP32", [3], [1, 2]), "it cannot be read"),
        (in_json("FP32", [2], ["one", "two"]), "it cannot be read"),
        (b'{"error": "no"}', "output 'Y' is missing"),
        (b"no", "output 'Y' is missing"),
        (b"\xff\x00", "output 'Y' is missing"),
    ],
)
def test_what_is_wrong_is_named(answer: bytes, text: str) -> None:
    checker = Checker(Check({"Y": np.array([[1, 2]], np.float32)}), "http")
    (found,) = checker.check([(0, answer)])[1]
    assert text in found


@pytest.mark.parametrize("answer", [b"\xff\xff", in_grpc("FP32", [2], b"\x00"), in_grpc("FP32", [9], b"\x00" * 4)])
def test_a_broken_message_is_wrong(answer: bytes) -> None:
    (text,) = Checker(Check(), "grpc").check([(0, answer)])[1]
    assert text.startswith("it cannot be read: ")


def test_other_answers_are_compared_whole() -> None:
    checker = Checker(Check(), "http")
    assert checker.check([(0, b"<p>1"), (0, b"<p>1")]) == (2, {})
    assert checker.check([(0, b"<p>2")])[1] == {"the answer of request 0 is b'<p>2', not b'<p>1', at element 0": 1}


@pytest.mark.parametrize("expected", [{}, {"Y": np.zeros((0, 2))}, {"Y": np.zeros(2), "Z": np.zeros(3)}])
def test_expected_outputs_that_fit_no_request_are_refused(expected: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="different numbers of requests, or none"):
        Check(expected)
