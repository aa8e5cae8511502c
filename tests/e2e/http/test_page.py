"""The page at `/`: browsers see it, and everybody else what there was before."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import re
from collections.abc import Callable

import alipes
import pytest
from support.models import add_model
from support.server import ServerProcess

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
BROKEN = "<script>x"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    (repository / BROKEN / "1").mkdir(parents=True)
    (repository / BROKEN / "config.pbtxt").write_text('backend: "<img src=x>"', encoding="utf-8")
    return serve_module(repository, "--exit-on-error=false")


def page(address: str, headers: dict[str, str], method: str = "GET") -> tuple[http.client.HTTPResponse, str]:
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request(method, "/", headers=headers)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response, text


def test_a_browser_sees_version_models_and_links(server: ServerProcess) -> None:
    response, text = page(server.http, BROWSER)
    assert (response.status, response.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert f"alipes <small>{alipes.__version__}</small>" in text
    assert '<a href="v2/models/double">double</a></td><td>1</td><td class="good">READY</td>' in text
    assert f'href="http://{server.metrics}/metrics"' in text and 'href="v2"' in text


def test_what_a_repository_holds_is_shown_as_text(server: ServerProcess) -> None:
    _, text = page(server.http, BROWSER)
    assert "<td>&lt;script&gt;x</td>" in text and '<td class="bad">UNAVAILABLE</td>' in text
    assert "<script" not in text and "<img" not in text


def test_the_policy_allows_the_style_of_the_page_and_nothing_else(server: ServerProcess) -> None:
    response, text = page(server.http, BROWSER)
    style = text.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = response.headers["Content-Security-Policy"].split("; ")
    assert policy[:2] == ["default-src 'none'", f"style-src 'sha256-{digest}'"]
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert not re.search(r"<[^>]*\b(?:style|src)=", text)


@pytest.mark.parametrize("accept", [None, "*/*", "application/json", "text/html;q=0"])
def test_others_get_what_there_was_before(server: ServerProcess, accept: str | None) -> None:
    response, text = page(server.http, {} if accept is None else {"Accept": accept})
    assert (response.status, json.loads(text)["error"].partition(";")[0]) == (404, "Not Found")
    assert sorted(name.lower() for name in response.headers) == ["content-length", "content-type", "date"]


def test_other_methods_find_no_page(server: ServerProcess) -> None:
    assert [page(server.http, BROWSER, method)[0].status for method in ("POST", "PUT", "OPTIONS")] == [404] * 3


@pytest.mark.parametrize("path", ["/v2", "/v2/health/live", "/v2/health/ready"])
def test_the_version_of_alipes_is_a_header(connection: http.client.HTTPConnection, path: str) -> None:
    connection.request("GET", path)
    response = connection.getresponse()
    text = response.read()
    assert response.headers["Server"] == f"alipes/{alipes.__version__}"
    assert path != "/v2" or json.loads(text)["name"] == "triton"


@pytest.mark.parametrize("group", ["metadata", "model-repository"])
def test_the_page_needs_the_headers_of_what_it_shows(
    group: str, tmp_path: object, serve: Callable[..., ServerProcess]
) -> None:
    server = serve(tmp_path, f"--http-restricted-api={group}:admin-key=word")
    response, text = page(server.http, BROWSER)
    assert (response.status, "admin-key" in text) == (403, True)
    assert page(server.http, {})[0].status == 404
    response, text = page(server.http, BROWSER | {"admin-key": "word"})
    assert (response.status, "There are none in the repository." in text) == (200, True)
