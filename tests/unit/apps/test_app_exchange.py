"""What a function sees of a request, and says of a response."""

from __future__ import annotations

from typing import Any

import alipes
import pytest
from alipes.errors import ConfigError, TooLarge


def test_a_request_has_headers_query_and_cookies() -> None:
    request = alipes.Request(headers={"X-A": "1", "Cookie": 'a=1; b="two"; junk'}, query="q=a+b&q=c%2Fd&e=")
    assert request.headers["x-a"] == "1"
    assert request.query == {"q": "c/d", "e": ""}
    assert request.cookies == {"a": "1", "b": "two"}
    assert (request.method, request.body, request.content_type) == ("POST", b"", "")


def test_a_query_of_too_many_fields_is_an_error_with_a_status() -> None:
    with pytest.raises(TooLarge, match="more than 1000 fields"):
        alipes.Request(query="a=1&" * 15_000).query  # noqa: B018


def test_cookies_of_a_response_are_headers() -> None:
    response = alipes.Response(1, headers={"X-A": ["1", "2"]}, cookies={"a": "1", "b": "2"})
    assert response.sent_headers() == {
        "X-A": ["1", "2"],
        "Set-Cookie": ["a=1; Path=/; HttpOnly; SameSite=Lax", "b=2; Path=/; HttpOnly; SameSite=Lax"],
    }


@pytest.mark.parametrize(
    "parts",
    [
        {"status": 99},
        {"status": 600},
        {"status": "200"},
        {"headers": {"a": "x\r\nb: y"}},
        {"headers": {"": "x"}},
        {"headers": {"a": 5}},
        {"cookies": {"a": "x;y"}},
        {"cookies": {"a b": "x"}},
        {"content_type": "text/html\n"},
    ],
)
def test_a_response_that_could_not_be_sent_is_refused(parts: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="Response"):
        alipes.Response(None, **parts)
