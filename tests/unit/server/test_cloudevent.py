"""Payloads as CloudEvents."""

from __future__ import annotations

import json
from urllib.parse import unquote

import pytest
from alipes.server.payloads.cloudevent import cloudevent
from alipes.server.payloads.exchange import headers_to_copy, read_head

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
RECORDED = 1_700_000_001_000_000_000


def test_attributes_are_headers() -> None:
    assert cloudevent(HEAD, {"source": "here"}, RECORDED) == {
        "content-type": "application/json",
        "ce-specversion": "1.0",
        "ce-id": "e",
        "ce-type": "org.kubeflow.serving.inference.response",
        "ce-source": "here",
        "ce-time": "2023-11-14T22:13:20.250000Z",
        "ce-recordedtime": "2023-11-14T22:13:21Z",
        "ce-endpoint": "m",
        "ce-modelversion": "3",
    }


def test_other_characters_than_printable_ascii_are_encoded() -> None:
    """As CloudEvents' binding to HTTP has it, section 3.1.3.2; a line break would begin another header."""
    headers = cloudevent(HEAD | {"model": 'a "b"\r\nx: é%', "request_id": "7", "status": 400}, {}, RECORDED)
    assert headers["ce-endpoint"] == "a%20%22b%22%0D%0Ax:%20%C3%A9%25"
    assert (headers["ce-requestid"], headers["ce-status"]) == ("7", "400")
    assert cloudevent(HEAD | {"path": "/v1/models/m:explain"}, {}, RECORDED)["ce-path"] == "/v1/models/m:explain"


def test_metadata_has_lists_of_values_as_kserve_s_has() -> None:
    headers = cloudevent(HEAD | {"headers": {"x-team": "optics"}}, {}, RECORDED)
    assert json.loads(unquote(headers["ce-metadata"])) == {"x-team": ["optics"]}


@pytest.mark.parametrize(
    ("headers", "exchange", "left"),
    [
        ({}, "e", {}),
        ({"ce-id": "", "x-team": "a"}, "e", {"x-team": "a"}),
        ({"ce-id": "a%20b"}, "a b", {}),
        ({"ce-id": "100%"}, "100%", {}),
    ],
)
def test_the_caller_s_id_is_that_of_the_exchange(headers: dict[str, str], exchange: str, left: dict[str, str]) -> None:
    head = read_head(json.dumps(HEAD | {"headers": headers}))
    assert (head["exchange"], head["headers"]) == (exchange, left)


def test_the_caller_s_id_is_copied_unless_it_is_redacted() -> None:
    assert headers_to_copy(["x-team"], ["cookie"]) == ("x-team", "ce-id")
    assert headers_to_copy(["x-team", "ce-id"], ["ce-id"]) == ("x-team",)
