"""Pages of other sites: a browser sends their requests to a server on its own machine, and none of them changes it."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.models import add_model
from support.server import ServerProcess

APP = "https://app.example.org"
EVIL = "http://evil.example"
INFER = "/v2/models/double/infer"
BODY = json.dumps({"inputs": [{"name": "X", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]})
CODE = "import pathlib\npathlib.Path({!r}).touch()\n"

CHANGES = [
    ("POST", "/v2/repository/models/double/load", ""),
    ("POST", "/v2/repository/models/double/unload", ""),
    ("POST", "/v2/logging", '{"log_info": true}'),
    ("POST", "/v2/trace/setting", "{}"),
    ("POST", "/v2/models/double/trace/setting", "{}"),
    ("POST", "/v2/systemsharedmemory/region/r/register", '{"key": "/r", "byte_size": 8}'),
    ("POST", "/v2/systemsharedmemory/unregister", ""),
    ("POST", "/v2/cudasharedmemory/unregister", ""),
    ("PUT", "/v2/models/double/sequences/7/state", ""),
    ("DELETE", "/v2/models/double/sequences/7/state", ""),
]
CALLS = [("POST", INFER, BODY), ("POST", "/v2/models/double/generate", "{}"), ("POST", "/shout", '{"text": "a"}')]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    add_model(folder, "double")
    return folder


@pytest.fixture(scope="module")
def server(repository: Path, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    return serve_module(
        repository,
        "--model-control-mode=explicit",
        "--load-model=double",
        f"--cors-origins={APP}",
        "--http-restricted-api=trace:key=word",
    )


def ask(
    server: ServerProcess, method: str, path: str, headers: dict[str, str], body: str = ""
) -> tuple[int, dict[str, object]]:
    connection = http.client.HTTPConnection(server.http, timeout=60)
    connection.request(method, path, body, {"Content-Type": "text/plain", "key": "word", **headers})
    response = connection.getresponse()
    text = response.read()
    connection.close()
    is_document = response.getheader("Content-Type") == "application/json" and text
    return response.status, json.loads(text) if is_document and text.startswith(b"{") else {}


def test_code_in_a_load_that_a_page_sends_does_not_run(server: ServerProcess, tmp_path: Path) -> None:
    files = {"file:1/model.py": base64.b64encode(CODE.format(str(tmp_path / "ran")).encode()).decode()}
    body = json.dumps({"parameters": {"config": json.dumps({"backend": "python"}), **files}})
    for headers in (
        {"Origin": EVIL, "Sec-Fetch-Site": "cross-site"},
        {"Origin": EVIL},
        {"Host": "rebound.example", "Origin": "http://rebound.example"},
        {"Host": "rebound.example"},
    ):
        status, document = ask(server, "POST", "/v2/repository/models/x/load", headers, body)
        assert status == 403, (headers, document)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("method", "path", "body"), CHANGES + CALLS)
def test_nothing_is_changed_or_run_for_a_page_of_another_site(
    server: ServerProcess, method: str, path: str, body: str
) -> None:
    key = {} if "/trace/" not in path else {"key": ""}
    for headers in (
        {"Origin": EVIL},
        {"Origin": "null"},
        {"Origin": EVIL, "Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://127.0.0.1:3000", "Sec-Fetch-Site": "same-site"},
    ):
        status, document = ask(server, method, path, headers | key, body)
        assert status == 403, headers
        assert "--cors-origins" in str(document) or key


def test_the_refusal_says_what_allows_the_page(server: ServerProcess) -> None:
    assert ask(server, "POST", INFER, {"Origin": EVIL}, BODY)[1] == {
        "error": "a page of 'http://evil.example' may not send this request: --cors-origins names the origins that may"
    }
    assert ask(server, "POST", INFER, {"Host": "a.example", "Origin": "http://a.example"}, BODY)[1] == {
        "error": "'a.example' is no name of this server: --allowed-hosts names those that it has"
    }
    long = str(ask(server, "POST", INFER, {"Origin": "x" * 9000}, BODY)[1])
    assert len(long) < 400


def test_allowed_pages_our_own_and_other_clients_are_answered(server: ServerProcess) -> None:
    port = server.http.partition(":")[2]
    for headers in (
        {},
        {"Origin": APP, "Sec-Fetch-Site": "cross-site"},
        {"Origin": f"http://{server.http}", "Sec-Fetch-Site": "same-origin"},
        {"Origin": f"http://{server.http}"},
        {"Origin": f"http://localhost:{port}", "Host": f"localhost:{port}"},
        {"Origin": f"http://[::1]:{port}", "Host": f"[::1]:{port}"},
        # A proxy that encrypts has the public name in Origin, and any in Host.
        {"Origin": "https://models.example", "Host": "models.example", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "https://models.example", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
        {"Host": "models.example"},
        {"Host": "app.example.org"},
    ):
        assert ask(server, "POST", INFER, headers, BODY)[0] == 200, headers
    assert ask(server, "POST", "/v2/logging", {"Host": "localhost"}, "{}")[0] == 200
    assert ask(server, "POST", "/v2/logging", {"Host": "models"}, "{}")[0] == 200
    assert ask(server, "POST", "/v2/logging", {"Host": "models.example"}, "{}")[0] == 403


def test_pages_read_as_before(server: ServerProcess) -> None:
    for path in ("/v2", "/v2/models/double", "/v2/logging"):
        assert ask(server, "GET", path, {"Origin": EVIL, "Sec-Fetch-Site": "cross-site"})[0] == 200
        assert ask(server, "GET", path, {"Host": "rebound.example"})[0] == 200


def test_who_has_the_key_may_send_from_anywhere(server: ServerProcess) -> None:
    headers = {"Origin": EVIL, "Host": "rebound.example"}
    assert ask(server, "POST", "/v2/trace/setting", headers, "{}")[0] == 200
    assert ask(server, "POST", "/v2/logging", headers, "{}")[0] == 403


def test_hosts_that_are_named_are_the_only_ones(repository: Path, serve: Callable[..., ServerProcess]) -> None:
    server = serve(repository, "--allowed-hosts=models.example")
    for host, expected in (
        ("models.example", 200),
        ("Models.Example:8000", 200),
        ("localhost:1", 200),
        ("127.0.0.1", 200),
        ("rebound.example", 403),
        ("xmodels.example", 403),
        ("", 200),
    ):
        assert ask(server, "GET", "/v2", {"Host": host})[0] == expected, host
        assert ask(server, "POST", INFER, {"Host": host}, BODY)[0] == expected, host
    assert ask(server, "POST", INFER, {"Host": "models.example", "Origin": "http://models.example"}, BODY)[0] == 200
    assert ask(server, "POST", INFER, {"Host": "models.example", "Origin": EVIL}, BODY)[0] == 403
