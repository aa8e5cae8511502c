"""Calls of a function that takes batches are answered as if each were read and written by itself."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.server import ServerProcess

APP = """
from typing import Annotated

import alipes
import numpy as np
from numpy.typing import NDArray


@alipes.model(max_batch_size=64)
def halves(x: Annotated[np.ndarray, np.float32, (None, 2)]) -> Annotated[np.ndarray, np.float32, (None, 2)]:
    if (x == 13).any():
        raise alipes.PermissionDenied("not this number")
    if (x == 14).any():
        raise RuntimeError("broken")
    return x / 2


@alipes.model(max_batch_size=64)
def named(text: list[str], count: list[int], x: NDArray[np.float64]) -> dict[str, object]:
    return {"text": [one.upper() for one in text], "count": [one + 1 for one in count], "x": x / 3}


@alipes.model
def centred(x: Annotated[np.ndarray, np.float32, (None, 2)]) -> Annotated[np.ndarray, np.float32, (None, 2)]:
    return x - x.mean(0)


@alipes.model(max_batch_size=64)
def noted(x: Annotated[np.ndarray, np.float32, (None, 2)]) -> Annotated[np.ndarray, np.float32, (None, 2)]:
    with open(NOTES, "a") as file:
        file.write(f"{x.tolist()}\\n")
    return x
"""

#: Read by the annotations' own reader: that of the data plane takes only the media type that nearly all clients send.
OTHER = "application/json; charset=utf-8"

HALVES = [
    '{"x": [1, 2]}',
    '{"x": [0.1, -1e-7]}',
    '{"x": [16777217, 1e16]}',
    ' { "x" : [ 3 , 4 ] } ',
    '{"x": [13, 0]}',
    '{"x": [14, 0]}',
    '{"x": [1]}',
    '{"x": [1, "two"]}',
    '{"x": [1, null]}',
    '{"x": [[1], 2]}',
    '{"x": [true, 2]}',
    '{"x": [true, false]}',
    '{"x": [1, 2], "y": 1}',
    '{"x": [1, 2], "x": [3, 4]}',
    '{"x": [1, 1e400]}',
    '{"x": [1, 1e39]}',
    '{"x": [1, NaN]}',
    '{"x": [1, 2]',
    '{"x": [01, 2]}',
    '{"x": 1}',
    "{}",
    "",
    "[1, 2]",
]
NAMED = [
    '{"text": "a", "count": 1, "x": [1, 2]}',
    '{"text": "caf\u00e9", "count": -1, "x": [1e-9]}',
    '{"text": "\\u0061\\n", "count": 1, "x": 3}',
    '{"text": "a", "count": 1.5, "x": [1]}',
    '{"text": 1, "count": 1, "x": [1]}',
    '{"text": "a", "count": 9223372036854775807, "x": [1]}',
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rows")


@pytest.fixture(scope="module")
def server(folder: Path, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    (folder / "app.py").write_text(f"NOTES = {str(folder / 'notes')!r}\n{APP}")
    return serve_module(folder / "app.py")


def answer(server: ServerProcess, path: str, body: str, content_type: str) -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection(server.http, timeout=30)
    try:
        connection.request("POST", path, body.encode(), {"Content-Type": content_type})
        response = connection.getresponse()
        return response.status, response.headers["Content-Type"], response.read()
    finally:
        connection.close()


@pytest.mark.parametrize(("path", "bodies"), [("/halves", HALVES), ("/named", NAMED)])
def test_either_reader_gives_the_same_answer(server: ServerProcess, path: str, bodies: list[str]) -> None:
    for body in bodies:
        assert answer(server, path, body, "application/json") == answer(server, path, body, OTHER), body


def test_of_many_that_come_together_each_has_its_own_answer(server: ServerProcess) -> None:
    alone = [answer(server, "/halves", body, OTHER) for body in HALVES]
    assert {status for status, _, _ in alone} >= {200, 400, 403, 422, 500}

    def ask(at: int) -> tuple[int, str, bytes]:
        return answer(server, "/halves", HALVES[at % len(HALVES)], "application/json")

    with ThreadPoolExecutor(32) as threads:
        together = list(threads.map(ask, range(len(HALVES) * 8)))
    assert together == alone * 8


def test_axis_0_is_no_batch_unless_the_author_says_so(server: ServerProcess) -> None:
    rows = [[[at, 1], [at + 2, 5]] for at in range(64)]
    with ThreadPoolExecutor(16) as threads:
        bodies = [json.dumps({"x": x}) for x in rows]
        answers = list(threads.map(lambda body: answer(server, "/centred", body, "application/json"), bodies))
    assert {(status, body) for status, _, body in answers} == {(200, b"[[-1.0,-2.0],[1.0,2.0]]")}


def test_a_function_is_called_for_requests_alone(server: ServerProcess, folder: Path) -> None:
    # It may write to a database: neither its rows nor its readiness are tried with made-up arguments.
    notes = folder / "notes"
    assert not notes.exists()
    assert answer(server, "/noted", '{"x": [1, 2]}', "application/json")[0] == 200
    assert notes.read_text() == "[[1.0, 2.0]]\n"


def test_tensors_and_documents_are_answered_side_by_side(server: ServerProcess) -> None:
    document = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [5, 6]}]})

    def ask(at: int) -> bytes:
        path, body = ("/v2/models/halves/infer", document) if at % 2 else ("/halves", '{"x": [3, 4]}')
        return answer(server, path, body, "application/json")[2]

    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(ask, range(64)))
    assert set(answers[::2]) == {b"[1.5,2.0]"}
    assert all(json.loads(one)["outputs"][0]["data"] == [2.5, 3.0] for one in answers[1::2])
