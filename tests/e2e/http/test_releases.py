"""Where releases of Triton differ, the flag `--triton-release` decides: each answer in 2.51 and later, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from support.models import add_model
from support.python_models import add_python_model
from support.server import ServerProcess
from support.waiting import TIMEOUT_S

RELEASES = ("2.51", "2.73")
INFER = "/v2/models/double/infer"
INPUT = {"name": "X", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}


@dataclass(frozen=True)
class Exchange:
    """A request, with the status and what the answer contains in 2.51 and in later releases."""

    fact: str
    method: str
    path: str
    old: tuple[int, str]
    later: tuple[int, str]
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


# Calls a model that nobody knows, and raises what it was answered.
CALLS = """
class TritonPythonModel:
    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(requests[0], "X")]
        call = pb_utils.InferenceRequest(model_name="nobody", requested_output_names=["Y"], inputs=inputs)
        raise pb_utils.TritonModelException(call.exec().error().message())
"""
CALL = "Model nobody - Error when running inference: "

UNREADY = (400, '{"error":"Model version not ready"}')

TABLE = (
    Exchange("the version of the server", "GET", "/v2", (200, '"version":"2.51.0"'), (200, '"version":"2.73.0"')),
    Exchange(
        "an output that is asked for twice",
        "POST",
        INFER,
        (200, '"data":[2.0,4.0]}]'),
        (400, "[request id: seven] output 'Y' already exists in request"),
        body={"id": "seven", "inputs": [INPUT], "outputs": [{"name": "Y"}, {"name": "Y"}]},
    ),
    Exchange(
        "fewer values than the shape has elements",
        "POST",
        INFER,
        (500, "\"Unable to parse 'data': Shape does not match true shape of 'data' field\""),
        (
            500,
            "\"Failed to parse 'data' field: shape does not match true shape; input 'X' (inputs[0]): "
            'shape [1,2] needs 2 elements, data has 1"',
        ),
        body={"inputs": [INPUT | {"data": [1]}]},
    ),
    Exchange(
        "an input that the model does not have",
        "POST",
        INFER,
        (400, "\"unexpected inference input 'Q' for model 'double'\""),
        (400, "\"unexpected inference input 'Q' for model 'double'; it takes 'X'\""),
        body={"inputs": [INPUT | {"name": "Q"}]},
    ),
    Exchange(
        "a length of the JSON that is no number",
        "POST",
        INFER,
        (400, "input byte size mismatch for input 'raw_input'"),
        (400, '"Unable to parse Inference-Header-Content-Length, got: ten"'),
        body={"inputs": [INPUT]},
        headers={"Inference-Header-Content-Length": "ten"},
    ),
    Exchange(
        "a filter of the index that is no truth value",
        "POST",
        "/v2/repository/index",
        (500, '"attempt to access JSON non-boolean as boolean"'),
        (400, "\"Invalid value for 'ready': expected a boolean\""),
        body={"ready": "yes"},
    ),
    Exchange(
        "a filter of the index that nests deeply",
        "POST",
        "/v2/repository/index",
        (400, '"JSON nesting depth exceeds maximum allowed limit (100)"'),
        (400, "\"Invalid value for 'ready': expected a boolean\""),
        body={"ready": json.loads("[" * 120 + "]" * 120)},
    ),
    Exchange(
        "a model that nobody knows",
        "GET",
        "/v2/models/nobody/ready",
        UNREADY,
        (404, "\"Request for unknown model: 'nobody' is not found\""),
    ),
    Exchange(
        "a call of a model that nobody knows",
        "POST",
        "/v2/models/calls/infer",
        (500, CALL + "Failed for execute the inference request. Model 'nobody' is not ready."),
        (500, CALL + "Request for unknown model: 'nobody' is not found"),
        body={"inputs": [INPUT | {"datatype": "INT32"}]},
    ),
    Exchange(
        "a version that nobody knows",
        "GET",
        "/v2/models/double/versions/7/ready",
        UNREADY,
        (404, "\"Request for unknown model: 'double' version 7 is not found\""),
    ),
    Exchange(
        "a forwarded header with a name of the protocol",
        "POST",
        INFER,
        (200, '"data":[2.0,4.0]}]'),
        (400, "\"Header 'Sequence_Id' is reserved for Triton usage and cannot be forwarded.\""),
        body={"inputs": [INPUT]},
        headers={"Sequence_Id": "5"},
    ),
    Exchange(
        "a forwarded header with the name of a parameter",
        "POST",
        INFER,
        (200, '"data":[2.0,4.0]}]'),
        (400, "\"Header 'binary_data_output' is reserved for Triton usage and cannot be forwarded.\""),
        body={"inputs": [INPUT]},
        headers={"binary_data_output": "false"},
    ),
    Exchange("a path with characters that none may have", "GET", "/v2/models/a<b>`", (400, ""), (400, "")),
)


@pytest.fixture(scope="module")
def servers(
    tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]
) -> Mapping[str, ServerProcess]:
    """A server of each release."""
    repository: Path = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    add_python_model(repository, "calls", CALLS, signature="X: INT32[2] -> Y: INT32[2]", config="max_batch_size: 1\n")
    forward = "--http-header-forward-pattern=sequence_.*|binary_.*"
    return {release: serve_module(repository, forward, f"--triton-release={release}") for release in RELEASES}


@pytest.mark.parametrize("exchange", TABLE, ids=lambda exchange: exchange.fact)
def test_each_release_answers_in_its_own_way(servers: Mapping[str, ServerProcess], exchange: Exchange) -> None:
    body = None if exchange.body is None else json.dumps(exchange.body)
    for release, (status, text) in zip(RELEASES, (exchange.old, exchange.later), strict=True):
        connection = HTTPConnection(servers[release].http, timeout=TIMEOUT_S)
        connection.request(exchange.method, exchange.path, body, dict(exchange.headers))
        answer = connection.getresponse()
        said = answer.read().decode()
        connection.close()
        assert (answer.status, text in said) == (status, True), f"{release}: {answer.status} {said}"


def test_the_later_release_is_the_default(repository: Path, serve: Callable[..., ServerProcess]) -> None:
    connection = HTTPConnection(serve(repository).http, timeout=TIMEOUT_S)
    connection.request("GET", "/v2")
    assert json.loads(connection.getresponse().read())["version"] == "2.73.0"
    connection.close()
