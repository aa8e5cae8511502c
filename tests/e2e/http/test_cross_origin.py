"""Pages of other origins: what `--cors-origins` lets them read, and that nothing changes without it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable

import pytest
from support.models import add_model
from support.server import ServerProcess

APP = "https://app.example.org"
INFER = "/v2/models/double/infer"
BODY = json.dumps({"inputs": [{"name": "X", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]})
PREFLIGHT = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    return serve_module(repository, f"--cors-origins={APP}", "--http-restricted-api=logging:Key=word")


def ask(
    server: ServerProcess, method: str, path: str, headers: dict[str, str], body: str | None = None
) -> tuple[int, dict[str, str]]:
    connection = http.client.HTTPConnection(server.http, timeout=60)
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status, {name.lower(): value for name, value in response.getheaders()}


@pytest.mark.parametrize("path", ["/v2", INFER, "/v2/logging", "/v2/no/such/path"])
def test_a_preflight_of_a_known_origin_is_allowed(server: ServerProcess, path: str) -> None:
    status, headers = ask(server, "OPTIONS", path, {"Origin": APP, **PREFLIGHT})
    assert (status, headers["access-control-allow-origin"], headers["vary"]) == (204, APP, "Origin")
    allowed = headers["access-control-allow-headers"].lower().split(", ")
    named = {"content-type", "authorization", "inference-header-content-length", "x-request-id", "key"}
    assert named <= set(allowed)
    assert {"GET", "POST", "PUT", "DELETE"} <= set(headers["access-control-allow-methods"].split(", "))


def test_a_known_origin_may_read_answers_and_errors(server: ServerProcess) -> None:
    for path, expected in ((INFER, 200), ("/v2/models/nobody/infer", 404), ("/v2/nowhere", 404)):
        status, headers = ask(server, "POST", path, {"Origin": APP}, BODY)
        assert (status, headers["access-control-allow-origin"], headers["vary"]) == (expected, APP, "Origin")
        exposed = headers["access-control-expose-headers"].split(", ")
        assert {"Inference-Header-Content-Length", "X-Request-Id"} <= set(exposed)


@pytest.mark.parametrize("origin", ["https://evil.example.org", "https://app.example.org.evil.org", "null", ""])
def test_another_origin_is_allowed_nothing(server: ServerProcess, origin: str) -> None:
    for method, more in (("OPTIONS", PREFLIGHT), ("POST", {})):
        _, headers = ask(server, method, INFER, {"Origin": origin, **more}, None if more else BODY)
        assert not [name for name in headers if name.startswith("access-control")]
        assert headers["vary"] == "Origin"


def test_a_preflight_opens_no_restricted_group(server: ServerProcess) -> None:
    status, headers = ask(server, "GET", "/v2/logging", {"Origin": APP})
    assert (status, headers["access-control-allow-origin"]) == (403, APP)


def test_the_star_lets_every_origin_read(
    tmp_path_factory: pytest.TempPathFactory, serve: Callable[..., ServerProcess]
) -> None:
    server = serve(tmp_path_factory.mktemp("none"), "--cors-origins=*")
    status, headers = ask(server, "OPTIONS", "/v2", {"Origin": "http://anywhere", **PREFLIGHT})
    assert (status, headers["access-control-allow-origin"], "vary" in headers) == (204, "*", False)
    _, headers = ask(server, "GET", "/v2", {})
    assert not [name for name in headers if name.startswith("access-control")]


def test_without_the_flag_origins_change_nothing(
    tmp_path_factory: pytest.TempPathFactory, serve: Callable[..., ServerProcess]
) -> None:
    server = serve(tmp_path_factory.mktemp("none"))
    for method, expected in (("OPTIONS", 405), ("GET", 200)):
        plain, asked = ask(server, method, "/v2", {}), ask(server, method, "/v2", {"Origin": APP, **PREFLIGHT})
        assert (plain[0], plain[1].keys()) == (asked[0], asked[1].keys()) == (expected, plain[1].keys())
        assert "vary" not in asked[1]
