"""Requests over HTTP to the model `double`, whose Y is twice X: two FP32 numbers a row."""

from __future__ import annotations

import http.client
import json

INFER = "/v2/models/double/infer"


def document(rows: int = 1, **changes: object) -> bytes:
    """A request with rows of 1 and 2, or with another tensor."""
    tensor = {"name": "X", "shape": [rows, 2], "datatype": "FP32", "data": [1, 2] * rows}
    return json.dumps({"inputs": [{**tensor, **changes}]}).encode()


def post(connection: http.client.HTTPConnection, body: bytes, **headers: str) -> tuple[int, str]:
    """Status and text of the answer to a body."""
    connection.request("POST", INFER, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def assert_serves(connection: http.client.HTTPConnection) -> None:
    """Checks that a good request is answered well."""
    status, text = post(connection, document())
    assert status == 200, text
    assert json.loads(text)["outputs"][0]["data"] == [2.0, 4.0]
