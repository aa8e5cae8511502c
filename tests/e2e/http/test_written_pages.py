"""Pages that the control plane hands to the data plane: served while they are there, and nowhere else."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator

import pytest
from alipes import _core
from alipes.config.load import parse_flags
from alipes.server.boundary import server_config
from support.waiting import TIMEOUT_S


@pytest.fixture
def plane() -> Iterator[_core.Server]:
    """A data plane by itself."""
    names = ("http", "grpc", "metrics")
    flags = [".", *(f"--{name}-port=0" for name in names), *(f"--{name}-address=127.0.0.1" for name in names)]
    server = _core.Server(server_config(parse_flags(flags, {})))
    yield server
    server.drain(0.0)
    server.stop()


@pytest.fixture
def connection(plane: _core.Server) -> Iterator[http.client.HTTPConnection]:
    opened = http.client.HTTPConnection(json.loads(plane.start())["http"], timeout=TIMEOUT_S)
    yield opened
    opened.close()


def get(connection: http.client.HTTPConnection, path: str, method: str = "GET") -> tuple[int, str | None, bytes]:
    connection.request(method, path)
    answer = connection.getresponse()
    # What was meant, which follows, is tested with all refusals.
    return answer.status, answer.headers["Content-Type"], answer.read().partition(b";")[0]


MISSING = (404, "text/plain", b'{"error":"Not Found')


def test_a_page_is_served_until_it_is_removed(plane: _core.Server, connection: http.client.HTTPConnection) -> None:
    for path in ("/openapi.json", "/docs", "/docs/", "/docs/ui.css"):
        assert get(connection, path) == MISSING
        plane.set_page(path, "text/x-old", b"old")
        plane.set_page(path, "text/x-new; charset=utf-8", b"\0new\xff")
        assert get(connection, path + "?query") == (200, "text/x-new; charset=utf-8", b"\0new\xff")
        assert get(connection, path, "POST")[0] == 405
        plane.remove_page(path)
        plane.remove_page(path)
        assert get(connection, path) == MISSING


def test_pages_do_not_stand_for_each_other(plane: _core.Server, connection: http.client.HTTPConnection) -> None:
    plane.set_page("/docs", "text/html", b"page")
    for path in ("/docs/", "/docs/x", "/docsx", "/DOCS", "/%64ocs", "/openapi.json"):
        assert get(connection, path) == MISSING, path


@pytest.mark.parametrize("path", ["", "docs", "/", "/docsx", "/v2", "/openapi.json/", "/metrics"])
def test_no_other_path_has_a_page(plane: _core.Server, path: str) -> None:
    with pytest.raises(ValueError, match=r"a page has the path /openapi\.json, /docs or one below"):
        plane.set_page(path, "text/html", b"")


@pytest.mark.parametrize("content_type", ["", "text/html\r\nSet-Cookie: a", "text/hätml"])
def test_a_content_type_stands_in_a_header(plane: _core.Server, content_type: str) -> None:
    with pytest.raises(ValueError, match="is no content type"):
        plane.set_page("/docs", content_type, b"")
