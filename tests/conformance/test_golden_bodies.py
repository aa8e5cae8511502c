"""Descriptions of bodies become the bytes they stand for, and answers the description they are compared by."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

import pytest
from golden.bodies import describe, encode, verbatim

_ENCODED = [
    (None, b""),
    ({"json": {"a": [1, "ä"]}}, '{"a":[1,"ä"]}'.encode()),
    ({"text": "{"}, b"{"),
    ({"hex": "00ff"}, b"\x00\xff"),
    ({"tensor": ["INT16", [1, -2]]}, b"\x01\x00\xfe\xff"),
    ({"tensor": ["BF16", [1.5]]}, b"\xc0\x3f"),
    ({"tensor": ["BYTES", ["ab", ""]]}, b"\x02\x00\x00\x00ab\x00\x00\x00\x00"),
    ({"repeat": [{"text": "ab"}, 2]}, b"abab"),
    ({"parts": [{"text": "a"}, {"hex": "00"}]}, b"a\x00"),
]

_SPLIT_GZIP = {"content-encoding": "gzip", "inference-header-content-length": "2"}

_DESCRIBED = [
    (b"", {}, None),
    (b'{"a": 1}', {}, {"json": {"a": 1}}),
    (b"1", {}, {"text": "1"}),
    (b'{"a": NaN}', {}, {"text": '{"a": NaN}'}),
    (b"\xff", {}, {"base64": "/w=="}),
    (b"data: {}\n\ndata: [1]\n\n", {"content-type": "text/event-stream"}, {"events": [{}, [1]]}),
    (zlib.compress(b"1"), {"content-encoding": "deflate"}, {"text": "1"}),
    (gzip.compress(b"{}\x01", mtime=0), _SPLIT_GZIP, {"json": {}, "tail": {"base64": "AQ=="}}),
    (b"{}\x01", {"inference-header-content-length": "2"}, {"json": {}, "tail": {"base64": "AQ=="}}),
]


@pytest.mark.parametrize(("body", "raw"), _ENCODED)
def test_encode(body: dict[str, Any] | None, raw: bytes) -> None:
    assert encode(body) == raw


@pytest.mark.parametrize(("raw", "headers", "body"), _DESCRIBED)
def test_describe(raw: bytes, headers: dict[str, str], body: dict[str, Any] | None) -> None:
    assert describe(raw, headers) == body


def test_verbatim_leaves_the_binary_part_out() -> None:
    assert verbatim(b"{ }\x01", {"inference-header-content-length": "3"}) == {"text": "{ }"}
