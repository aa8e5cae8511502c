"""Headers that a transformer of the KServe SDK passes on to its predictor."""

from __future__ import annotations

from alipes.compat.kserve.model import append_forwardable_headers


def test_a_predictor_gets_the_trace_of_its_caller_and_no_cookies() -> None:
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=b"}
    headers = {"cookie": "c", "x-request-id": "7", **trace}
    assert append_forwardable_headers(headers, {"a": "b"}) == {"a": "b", "x-request-id": "7", **trace}
