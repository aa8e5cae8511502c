"""CloudEvents over the V1 protocol, as KServe's server reads and answers them, for a model of any kind."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from support.kserve_script import Answer, ask
from support.models import add_model
from support.server import ServerProcess

MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
EVENT = {"id": "1", "source": "here", "specversion": "1.0", "type": "question"}
DATA = {"instances": [[1, 2]]}
ANSWER = {"predictions": [[2, 4]]}
STRUCTURED = "application/cloudevents+json"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    return serve_module(repository, "--http-max-input-size=100000")


def binary(server: ServerProcess, body: Any = DATA, model: str = "double", **attributes: str) -> Answer:
    """The answer to an event whose attributes are headers."""
    headers = {f"ce-{name}": value for name, value in attributes.items()}
    return ask(f"http://{server.http}/v1/models/{model}:predict", body, **headers)


def structured(server: ServerProcess, event: Any, kind: str = STRUCTURED, **headers: str) -> Answer:
    """The answer to an event of one object."""
    body = event if isinstance(event, bytes) else json.dumps(event).encode()
    return ask(f"http://{server.http}/v1/models/double:predict", body, content_type=kind, **headers)


def test_an_event_in_headers_is_answered_in_headers(server: ServerProcess) -> None:
    answer = binary(server, **EVENT, time="2026-01-01T00:00:00Z", subject="7")
    assert (answer.status, answer.document) == (200, ANSWER)
    named = {name: value for name, value in answer.headers.items() if name.startswith("ce-")}
    assert UUID.fullmatch(named.pop("ce-id"))
    assert MOMENT.fullmatch(named.pop("ce-time"))
    assert named == {
        "ce-specversion": "1.0",
        "ce-type": "io.kserve.inference.response",
        "ce-source": "io.kserve.inference.double",
    }
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("kind", [STRUCTURED, f"{STRUCTURED}; charset=utf-8"])
def test_an_event_of_one_object_is_answered_as_one(server: ServerProcess, kind: str) -> None:
    answer = structured(server, EVENT | {"data": DATA, "time": "2026-01-01T00:00:00Z"}, kind)
    assert (answer.status, answer.headers["content-type"]) == (200, STRUCTURED)
    document = answer.document
    assert UUID.fullmatch(document.pop("id"))
    assert MOMENT.fullmatch(document.pop("time"))
    assert document == {
        "specversion": "1.0",
        "type": "io.kserve.inference.response",
        "source": "io.kserve.inference.double",
        "data": ANSWER,
    }
    assert not any(name.startswith("ce-") for name in answer.headers)


def test_columns_in_an_event_are_answered_as_columns(server: ServerProcess) -> None:
    answer = structured(server, EVENT | {"data": {"inputs": [[1, 2], [3, 4]]}})
    assert answer.document["data"] == {"outputs": [[2, 4], [6, 8]]}


def test_an_event_without_its_content_type_is_answered_plainly(server: ServerProcess) -> None:
    """As by KServe's server."""
    assert structured(server, EVENT | {"data": DATA}, "application/json").document == ANSWER


def test_compressed_events_are_answered_compressed(server: ServerProcess) -> None:
    body = gzip.compress(json.dumps(EVENT | {"data": DATA}).encode())
    answer = structured(server, body, content_encoding="gzip", accept_encoding="gzip")
    assert (answer.headers["content-encoding"], answer.headers["content-type"]) == ("gzip", STRUCTURED)
    assert json.loads(gzip.decompress(answer.body))["data"] == ANSWER


def test_what_is_no_event_is_answered_as_before(server: ServerProcess) -> None:
    """A lone `ce-id` is the id of KServe's logger."""
    answer = binary(server, id="1", source="here")
    assert (answer.status, answer.document) == (200, ANSWER)
    assert not any(name.startswith("ce-") for name in answer.headers)


@pytest.mark.parametrize(
    ("without", "text"),
    [
        ("id", "Missing required keys: {'id'}"),
        ("source", "Missing required keys: {'source'}"),
        ("type", "Missing required keys: {'type'}"),
        ("specversion", "Failed to find specversion in HTTP request"),
    ],
)
def test_an_event_that_lacks_an_attribute_is_refused(server: ServerProcess, without: str, text: str) -> None:
    event = {name: value for name, value in EVENT.items() if name != without}
    for answer in (binary(server, **event), structured(server, event | {"data": DATA})):
        assert (answer.status, answer.document) == (400, {"error": f"Cloud Event Exceptions: {text}"})
        assert answer.headers["content-type"] == "application/json"
        assert not any(name.startswith("ce-") for name in answer.headers)


def test_events_of_other_versions_are_refused(server: ServerProcess) -> None:
    answer = binary(server, **EVENT | {"specversion": "2.0"})
    assert (answer.status, answer.document["error"]) == (400, "Cloud Event Exceptions: Found invalid specversion 2.0")
    assert binary(server, **EVENT | {"specversion": "0.3"}).document == ANSWER
    answer = structured(server, EVENT | {"specversion": "2.0", "data": DATA})
    assert (answer.status, answer.document["error"]) == (400, 'Cloud Event Exceptions: Found invalid specversion "2.0"')


@pytest.mark.parametrize("body", [b"{", b"", b"\xff"])
def test_data_that_is_no_json_is_refused(server: ServerProcess, body: bytes) -> None:
    answer = binary(server, body, **EVENT)
    assert answer.status == 400
    assert answer.document["error"].startswith("Failed to decode or parse binary json cloudevent: ")
    answer = structured(server, body)
    assert answer.status == 400
    assert answer.document["error"].startswith("Unrecognized request format: ")


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (EVENT, "Missing required keys: {'data'}"),
        (EVENT | {"data_base64": "e30="}, "the data is in 'data_base64', expected JSON in 'data'"),
        ([EVENT | {"data": DATA}], "expected an object of attributes"),
        (EVENT | {"data": "{}"}, "the body is \"{}\", expected a JSON object with 'instances' or 'inputs'"),
        (EVENT | {"data": {"instances": [[1]]}}, "input 'X' has shape [1,1], model 'double' takes [-1,2]"),
    ],
)
def test_events_without_data_of_the_model_are_refused(server: ServerProcess, event: Any, text: str) -> None:
    answer = structured(server, event)
    assert answer.status == 400
    assert text in answer.document["error"]


def test_the_limits_of_a_body_are_those_of_an_event(server: ServerProcess) -> None:
    large = {"instances": [[0, 1]] * 20_000}
    for answer in (binary(server, large, **EVENT), structured(server, EVENT | {"data": large})):
        assert answer.status == 400
        assert "100000" in answer.document["error"]
    assert binary(server, model="nobody", **EVENT).status == 404
    assert ask(f"http://{server.http}/v1/models/double:predict", DATA).document == ANSWER


def test_the_variables_of_kserve_name_the_answer(repository: Any, serve: Callable[..., ServerProcess]) -> None:
    add_model(repository, "double")
    environment = {"CE_MERGE": "True", "CE_TYPE": "an answer", "CE_SOURCE": "žába"}
    server = serve(repository, environment=environment)
    answer = binary(server, **EVENT, team="optics", datacontenttype="application/json")
    named = {name: value for name, value in answer.headers.items() if name.startswith("ce-")}
    del named["ce-id"], named["ce-time"]
    assert named == {
        "ce-specversion": "1.0",
        "ce-type": "an%20answer",
        "ce-source": "%C5%BE%C3%A1ba",
        "ce-team": "optics",
    }
    document = structured(server, EVENT | {"data": DATA, "team": {"name": "optics"}}).document
    assert (document["source"], document["type"], document["team"]) == ("žába", "an answer", {"name": "optics"})
    assert document["id"] != EVENT["id"]
