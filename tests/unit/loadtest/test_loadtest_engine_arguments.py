"""What the engine refuses of its arguments."""

from __future__ import annotations

from typing import Any

import pytest
from alipes._core import LoadTestEngine, LoadTestRequests


@pytest.mark.parametrize(
    ("wire", "compression", "text"),
    [
        ("grpc", "zstd", "the compression 'zstd' is unknown: expected 'gzip' or 'deflate'"),
        ("http", "gzip", "requests are compressed over gRPC"),
    ],
)
def test_a_compression_that_cannot_be_used_is_refused(wire: str, compression: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        LoadTestRequests("127.0.0.1:1", wire, compression=compression)


@pytest.mark.parametrize(
    ("pace", "text"),
    [
        ({}, "either callers, or rates or intervals, or waves"),
        ({"callers": 1, "waves": (1, 1, 1, 1)}, "either callers, or rates or intervals, or waves"),
        ({"waves": (0, 1, 1, 1)}, "a number of a wave has to be 1 or more"),
        ({"waves": (1, 1, 1, 0)}, "responses of a wave have to be 1 or more"),
    ],
)
def test_a_pace_that_is_none_is_refused(pace: dict[str, Any], text: str) -> None:
    requests = LoadTestRequests("127.0.0.1:1", "http")
    requests.call("/x")
    with pytest.raises(ValueError, match=text):
        LoadTestEngine(requests, **pace)
