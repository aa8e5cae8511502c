"""Models of the V1 protocol: their names, whether they are ready, what they do not offer; and liveness at `/`."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from typing import Any

import pytest
from support.models import add_model
from support.python_models import add_python_model
from support.server import ServerProcess
from support.waiting import TIMEOUT_S

KEY = {"V1-Key": "word"}
BODY = b'{"instances": [[1, 2]]}'
RESTRICTED = "This API is restricted, expecting header 'V1-Key'"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double", versions=(1, 2), config="version_policy { all {} }\n")
    add_python_model(repository, "broken", "raise ValueError('on purpose')")
    add_python_model(repository, "stream", config="model_transaction_policy { decoupled: true }\n")
    add_model(repository, "idle")
    names = ["double", "broken", "stream"]
    return serve_module(
        repository,
        "--exit-on-error=false",
        "--model-control-mode=explicit",
        *(f"--load-model={name}" for name in names),
    )


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    """Status and document of an answer."""
    connection.request(method, path, BODY if method == "POST" else None, headers or {})
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def test_models_that_were_to_be_loaded_are_listed_once(connection: http.client.HTTPConnection) -> None:
    assert ask(connection, "GET", "/v1/models") == (200, {"models": ["broken", "double", "stream"]})


def test_a_ready_model_says_so(connection: http.client.HTTPConnection) -> None:
    assert ask(connection, "GET", "/v1/models/double") == (200, {"name": "double", "ready": True})


def test_a_version_has_the_state_of_tensorflow_serving(connection: http.client.HTTPConnection) -> None:
    state = {"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
    assert ask(connection, "GET", "/v1/models/double/versions/1") == (200, {"model_version_status": [state]})


@pytest.mark.parametrize("path", ["/v1/models/broken", "/v1/models/broken:predict", "/v1/models/broken:explain"])
def test_a_model_that_is_not_ready_is_503(connection: http.client.HTTPConnection, path: str) -> None:
    answer = ask(connection, "POST" if ":" in path else "GET", path)
    assert answer == (503, {"error": "Model with name broken is not ready."})


@pytest.mark.parametrize("name", ["none", "idle"])
@pytest.mark.parametrize("verb", ["", ":predict", ":explain", ":classify"])
def test_a_model_that_nobody_loaded_is_404(connection: http.client.HTTPConnection, name: str, verb: str) -> None:
    answer = ask(connection, "POST" if verb else "GET", f"/v1/models/{name}{verb}")
    assert answer == (404, {"error": f"Model with name {name} does not exist."})


def test_an_unknown_version_is_404(connection: http.client.HTTPConnection) -> None:
    status, answer = ask(connection, "GET", "/v1/models/double/versions/7")
    assert (status, "version 7 is not found" in answer["error"]) == (404, True)


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("double:explain", "has no explainer"),
        ("double/versions/1:explain", "has no explainer"),
        ("double:classify", "':classify' is not offered"),
        ("double:regress", "':regress' is not offered"),
        ("stream:predict", "V1 predict doesn't support models with decoupled transaction policy"),
    ],
)
def test_what_is_not_offered_is_501(connection: http.client.HTTPConnection, path: str, part: str) -> None:
    status, answer = ask(connection, "POST", f"/v1/models/{path}")
    assert (status, part in answer["error"]) == (501, True)


def test_a_model_that_was_unloaded_is_known_no_longer(connection: http.client.HTTPConnection) -> None:
    for verb, status, names in (("load", 200, ["broken", "double", "idle", "stream"]), ("unload", 404, None)):
        connection.request("POST", f"/v2/repository/models/idle/{verb}", b"{}")
        assert connection.getresponse().read() == b""
        assert ask(connection, "GET", "/v1/models/idle")[0] == status
        assert ask(connection, "GET", "/v1/models")[1]["models"] == (names or ["broken", "double", "stream"])


@pytest.mark.parametrize("path", ["/v1/models/double", "/v1/models", "/v1/models/double/versions/1"])
def test_states_are_read_and_nothing_else(connection: http.client.HTTPConnection, path: str) -> None:
    assert ask(connection, "POST", path) == (405, {"error": "Method Not Allowed; send GET"})


def test_restricted_groups_guard_v1_as_they_guard_v2(
    tmp_path_factory: pytest.TempPathFactory, serve: Callable[..., ServerProcess]
) -> None:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    server = serve(repository, "--http-restricted-api=inference,model-repository,health:V1-Key=word")
    connection = http.client.HTTPConnection(server.http, timeout=TIMEOUT_S)
    for method, path in [
        ("POST", "/v1/models/double:predict"),
        ("PUT", "/v1/models/double:predict"),
        ("POST", "/v1/models/double/versions/1:predict"),
        ("POST", "/v1/models/none:explain"),
        ("GET", "/v1/models"),
        ("GET", "/v1/models/double"),
    ]:
        assert ask(connection, method, path) == (403, {"error": RESTRICTED}), path
    assert ask(connection, "POST", "/v1/models/double:predict", KEY) == (200, {"predictions": [[2, 4]]})
    assert ask(connection, "GET", "/v1/models", KEY) == (200, {"models": ["double"]})
    connection.close()
