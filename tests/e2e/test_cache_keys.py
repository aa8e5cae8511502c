"""Which requests are the same to the response cache: one row for each thing in which they may differ."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from support.endpoints import GrpcEndpoint, HttpEndpoint, Request
from support.python_models import add_python_model
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]
Document = dict[str, Any]

SUMS = """
class TritonPythonModel:
    def execute(self, requests):
        return [answer(Y=given(request, "A") + 2 * given(request, "B").sum(), N=np.array([7], np.int32))
                for request in requests]
"""
SIGNATURE = "A: INT32[-1, -1], B: INT32[-1, -1] -> Y: INT32[-1, -1], N: INT32[1]"
CONFIG = "response_cache { enable: true }\nversion_policy { all { } }\n"
SUMS_OF = "/v2/models/sums/versions/1/infer"


def tensor(name: str, *values: int, shape: tuple[int, ...] = (1, 2)) -> Document:
    return {"name": name, "datatype": "INT32", "shape": list(shape), "data": list(values)}


@pytest.fixture(scope="module")
def server(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_python_model(repository, "sums", SUMS, signature=SIGNATURE, config=CONFIG, versions=(1, 2))
    add_python_model(repository, "other", SUMS, signature=SIGNATURE, config=CONFIG)
    return serve_module(repository, "--cache-config=local,size=1048576", "--http-header-forward-pattern=x-.*")


@pytest.fixture
def endpoint(server: ServerProcess) -> Iterator[HttpEndpoint]:
    with HttpEndpoint(server) as opened:
        yield opened


def ask(endpoint: HttpEndpoint, body: Document, path: str = SUMS_OF, **headers: str) -> Document:
    response, content = endpoint.call("POST", path, json.dumps(body).encode(), headers)
    assert response.status == 200, content
    return dict(json.loads(content))


def hits(endpoint: HttpEndpoint) -> int:
    """Answers that the cache has given, of all models."""
    document = json.loads(endpoint.call("GET", "/v2/models/stats")[1])
    return sum(one["inference_stats"]["cache_hit"]["count"] for one in document["model_stats"])


# The values of each row are its own, so that the rows do not see each other's answers.
SAME: dict[str, Document] = {
    "id": {"id": "another"},
    "parameters that are none": {"parameters": {}},
    "time-out": {"parameters": {"timeout": 60_000_000}},
    "priority": {"parameters": {"priority": 1}},
    "form of the outputs": {"parameters": {"binary_data_output": False}},
    "one of the outputs": {"outputs": [{"name": "N"}]},
    "order of the outputs": {"outputs": [{"name": "N"}, {"name": "Y"}]},
    "classification": {"outputs": [{"name": "Y", "parameters": {"classification": 1}}]},
    "unknown members": {"model_name": "sums", "anything": [1]},
}
OTHER: dict[str, Document] = {
    "a parameter": {"parameters": {"p": 1}},
    "a parameter that is false": {"parameters": {"p": False}},
    "a sequence": {"parameters": {"sequence_id": 5, "sequence_start": True}},
}
ROWS = [(name, change, 1) for name, change in SAME.items()] + [(name, change, 0) for name, change in OTHER.items()]


@pytest.mark.parametrize(("number", "row"), list(enumerate(ROWS)), ids=[row[0] for row in ROWS])
def test_members_of_a_request_count_or_do_not(
    endpoint: HttpEndpoint, number: int, row: tuple[str, Document, int]
) -> None:
    _, change, expected = row
    body: Document = {"inputs": [tensor("A", number, 1), tensor("B", 2, 3)]}
    ask(endpoint, body)
    before = hits(endpoint)
    for _ in range(2):  # an equal body may be answered without being read
        ask(endpoint, deepcopy(body) | change)
    assert hits(endpoint) - before == (2 if expected else 1)


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ([tensor("B", 2, 3), tensor("A", 100, 1)], 1),
        ([tensor("A", 100, 1, shape=(2, 1)), tensor("B", 2, 3)], 0),
        ([tensor("A", 2, 3), tensor("B", 100, 1)], 0),
        ([tensor("A", 100, 1), tensor("B", 2, 4)], 0),
    ],
    ids=["order", "shape", "names", "bytes"],
)
def test_inputs_are_distinguished_by_all_but_their_order(
    endpoint: HttpEndpoint, inputs: list[Document], expected: int
) -> None:
    ask(endpoint, {"inputs": [tensor("A", 100, 1), tensor("B", 2, 3)]})
    before = hits(endpoint)
    answer = ask(endpoint, {"inputs": inputs})
    assert hits(endpoint) - before == expected
    (first,) = (one for one in inputs if one["name"] == "A")
    (y,) = (one for one in answer["outputs"] if one["name"] == "Y")
    assert y["shape"] == first["shape"]


def test_every_version_of_every_model_has_answers_of_its_own(endpoint: HttpEndpoint) -> None:
    body: Document = {"inputs": [tensor("A", 200, 1), tensor("B", 2, 3)]}
    before = hits(endpoint)
    for path in (SUMS_OF, "/v2/models/sums/versions/2/infer", "/v2/models/other/infer"):
        ask(endpoint, body, path)
    assert hits(endpoint) == before
    ask(endpoint, body, "/v2/models/sums/infer")
    assert hits(endpoint) == before + 1, "without a version it is the highest"


def test_the_protocol_does_not_count_but_forwarded_headers_do(server: ServerProcess, endpoint: HttpEndpoint) -> None:
    ask(endpoint, {"inputs": [tensor("A", 300, 1), tensor("B", 2, 3)]})
    before = hits(endpoint)
    inputs = {"A": np.array([[300, 1]], np.int32), "B": np.array([[2, 3]], np.int32)}
    request = Request("sums", inputs, "1", None, None, "", 60_000_000, 1)
    with GrpcEndpoint(server) as other:
        for one in (endpoint, other):
            assert one.infer(request)["Y"].tolist() == [[310, 11]]
    assert hits(endpoint) == before + 2
    for header in ({"x-team": "a"}, {"x-team": "b"}, {"y-team": "a"}):
        ask(endpoint, {"inputs": [tensor("A", 300, 1), tensor("B", 2, 3)]}, **header)
    assert hits(endpoint) == before + 3, "a header that reaches the model may change its answer"
