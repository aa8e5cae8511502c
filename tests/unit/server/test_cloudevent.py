"""Payloads as CloudEvents."""

from __future__ import annotations

from alipes.server.payloads.cloudevent import cloudevent

HEAD = {
    "side": "response",
    "exchange": "e",
    "model": "m",
    "version": 3,
    "request_id": "",
    "unix_ns": 1_700_000_000_250_000_000,
    "status": 200,
    "content_type": "application/json",
    "path": "",
    "headers": {},
}


def test_attributes_are_headers() -> None:
    assert cloudevent(HEAD, {"source": "here"}) == {
        "content-type": "application/json",
        "ce-specversion": "1.0",
        "ce-id": "e",
        "ce-type": "org.kubeflow.serving.inference.response",
        "ce-source": "here",
        "ce-time": "2023-11-14T22:13:20.250000Z",
        "ce-endpoint": "m",
        "ce-modelversion": "3",
    }


def test_other_characters_than_printable_ascii_are_encoded() -> None:
    """As CloudEvents' binding to HTTP has it, section 3.1.3.2; a line break would begin another header."""
    headers = cloudevent(HEAD | {"model": 'a "b"\r\nx: é%', "request_id": "7", "status": 400}, {"source": "here"})
    assert headers["ce-endpoint"] == "a%20%22b%22%0D%0Ax:%20%C3%A9%25"
    assert (headers["ce-requestid"], headers["ce-status"]) == ("7", "400")
    assert cloudevent(HEAD | {"path": "/v1/models/m:explain"}, {})["ce-path"] == "/v1/models/m:explain"
