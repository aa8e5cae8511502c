"""`POST /<name>`: the members of a document are the arguments, and the answer is what the function returns."""

from __future__ import annotations

import http.client
import io
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from support.server import ServerProcess
from support.waiting import until

APP = """
import asyncio
import dataclasses
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Annotated

import alipes
import numpy as np
from numpy.typing import NDArray
from PIL import Image

NOTES = Path(__file__).parent


@dataclasses.dataclass
class Row:
    name: str
    values: list[float]


@alipes.model
def total(rows: list[Row], scale: float = 1.0) -> dict[str, float]:
    return {row.name: scale * sum(row.values) for row in rows}


@alipes.model
def add(a: float, b: float = 1.0) -> float:
    return a + b


@alipes.model(max_batch_size=4)
def double(x: Annotated[np.ndarray, np.float32, (None, 2)]) -> NDArray[np.float32]:
    return x * 2


@alipes.model
def size(image: Image.Image, unit: str = "px") -> dict[str, str]:
    return {"size": f"{image.width} x {image.height} {unit}"}


@alipes.model
def grey(image: Image.Image) -> Image.Image:
    return image.convert("L")


@alipes.model
def echo(data: bytes) -> bytes:
    return data


@alipes.model
def exchange(status: int, request: alipes.Request) -> alipes.Response:
    seen = {"query": request.query, "cookies": request.cookies, "header": request.headers["x-own"]}
    return alipes.Response(seen, status=status, headers={"X-Two": ["1", "2"]}, cookies={"kind": "oat"})


@alipes.model
def page() -> alipes.Response:
    return alipes.Response("<p>hello</p>", content_type="text/html; charset=utf-8")


@alipes.model
def fails(how: str) -> complex:
    if how == "lookup":
        raise alipes.NotFound("there is none of that name")
    if how == "fault":
        raise KeyError(how)
    return 1j


@alipes.model
def count(n: int) -> Iterator[dict[str, int]]:
    try:
        for number in range(n):
            yield {"n": number}
        if n == 2:
            raise ValueError("two are too few")
    finally:
        (NOTES / "closed").touch()


@alipes.model
async def words(text: str) -> AsyncIterator[str]:
    for word in text.split():
        await asyncio.sleep(0)
        yield word


@alipes.model(concurrency=40)
async def flood(n: int) -> AsyncIterator[str]:
    for _ in range(n):
        yield "x" * 100_000


@alipes.model(concurrency=2)
async def wait(forever: bool) -> str:
    try:
        if forever:
            (NOTES / "waiting").touch()
            await asyncio.sleep(3600)
    except asyncio.CancelledError:
        (NOTES / "cancelled").touch()
        raise
    return "waited"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("app")
    (folder / "app.py").write_text(APP)
    return folder


@pytest.fixture(scope="module")
def server(folder: Path, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    return serve_module(folder / "app.py")


def post(
    server: ServerProcess, path: str, body: bytes | dict[str, Any], **headers: str
) -> tuple[int, bytes, http.client.HTTPMessage]:
    if isinstance(body, dict):
        body, headers = json.dumps(body).encode(), {"Content-Type": "application/json", **headers}
    connection = http.client.HTTPConnection(server.http, timeout=60)
    connection.request("POST", f"/{path}", body, {name.replace("_", "-"): value for name, value in headers.items()})
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response.status, data, response.headers


def answer(server: ServerProcess, path: str, body: bytes | dict[str, Any], **headers: str) -> tuple[int, Any]:
    status, data, _ = post(server, path, body, **headers)
    return status, json.loads(data)


def picture(width: int = 4, height: int = 3) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), "red").save(file, "PNG")
    return file.getvalue()


def test_the_answer_is_the_returned_value_itself(server: ServerProcess) -> None:
    rows = [{"name": "a", "values": [1, 2]}, {"name": "b", "values": []}]
    assert answer(server, "total", {"rows": rows, "scale": 2}) == (200, {"a": 6.0, "b": 0.0})
    assert answer(server, "add", {"a": 2}) == (200, 3.0)
    assert answer(server, "double", {"x": [1, 2]}) == (200, [2.0, 4.0])


@pytest.mark.parametrize(
    ("path", "body", "status", "error"),
    [
        ("total", {"rows": [{"name": "a", "values": [1, "x"]}]}, 422, "$.rows[0].values[1]: expected float, got str"),
        ("total", {"rows": [{"values": []}]}, 422, "$.rows[0].name: is missing"),
        ("add", {"a": 1, "c": 2}, 422, "$.c: there is no such argument"),
        ("double", {"x": [1, 2, 3]}, 422, "$.x: expected an array of float32 of shape [2], got shape [3]"),
        ("add", b"{", 400, "the body is no JSON: Input data was truncated"),
        ("fails", {"how": "lookup"}, 404, "there is none of that name"),
        ("fails", {"how": "fault"}, 500, "KeyError: 'fault'"),
        (
            "fails",
            {"how": "value"},
            500,
            "TypeError: a complex cannot be answered as JSON; return numbers, texts, lists,",
        ),
    ],
)
def test_what_goes_wrong_has_a_status_and_one_error(
    server: ServerProcess, path: str, body: bytes | dict[str, Any], status: int, error: str
) -> None:
    found, document = answer(server, path, body)
    assert found == status
    assert document["error"].startswith(error)
    assert set(document) == {"error"}


def test_a_fault_is_logged_at_the_line_of_the_function(server: ServerProcess) -> None:
    assert answer(server, "fails", {"how": "fault"}) == (500, {"error": "KeyError: 'fault'"})
    line = APP.splitlines().index("        raise KeyError(how)") + 1
    server.wait_for_output(rf"""app\.py:{line}\] "fails_0_0: KeyError: 'fault'"\n""")
    server.wait_for_output(rf"""app\.py:{line}\]     File "[^"]+app\.py", line {line}, in fails\n""")


def test_pictures_and_files_come_and_go_as_they_are(server: ServerProcess) -> None:
    assert answer(server, "size?unit=pixels", picture(), Content_Type="image/png") == (200, {"size": "4 x 3 pixels"})
    body = b"--b\r\nContent-Disposition: form-data; name=image; filename=a.png\r\n\r\n" + picture() + b"\r\n--b--\r\n"
    assert answer(server, "size", body, Content_Type="multipart/form-data; boundary=b") == (200, {"size": "4 x 3 px"})
    status, data, headers = post(server, "grey", picture(), Content_Type="image/png")
    assert (status, headers["content-type"], Image.open(io.BytesIO(data)).mode) == (200, "image/png", "L")
    status, data, headers = post(server, "echo", bytes(range(256)), Content_Type="application/octet-stream")
    assert (status, headers["content-type"], data) == (200, "application/octet-stream", bytes(range(256)))
    status, document = answer(server, "size", picture()[:40], Content_Type="image/png")
    assert (status, document["error"].partition(":")[0]) == (422, "$.image")
    assert answer(server, "add", b"1", Content_Type="text/plain")[0] == 415


def test_status_headers_cookies_and_query_are_read_and_set(server: ServerProcess) -> None:
    status, data, headers = post(server, "exchange?a=1&b=x+y", {"status": 202}, Cookie="c=d", X_Own="mine")
    assert (status, json.loads(data)) == (
        202,
        {"query": {"a": "1", "b": "x y"}, "cookies": {"c": "d"}, "header": "mine"},
    )
    assert headers.get_all("x-two") == ["1", "2"]
    assert headers["set-cookie"] == "kind=oat; Path=/; HttpOnly; SameSite=Lax"
    status, data, headers = post(server, "page", b"")
    assert (status, data, headers["content-type"]) == (200, b"<p>hello</p>", "text/html; charset=utf-8")


def test_a_stream_is_events_or_lines(server: ServerProcess) -> None:
    status, data, headers = post(server, "count", {"n": 3})
    assert (status, headers["content-type"].partition(";")[0]) == (200, "text/event-stream")
    assert data == b'data: {"n":0}\n\ndata: {"n":1}\n\ndata: {"n":2}\n\n'
    status, data, headers = post(server, "words", {"text": "to be"}, Accept="application/x-ndjson")
    assert (status, headers["content-type"], data) == (200, "application/x-ndjson", b'"to"\n"be"\n')
    _, data, _ = post(server, "count", {"n": 2}, Accept="application/x-ndjson")
    assert json.loads(data.splitlines()[-1]) == {"error": "ValueError: two are too few"}
    status, document = answer(server, "count", {"n": "many"})
    assert (status, document) == (422, {"error": "$.n: expected int, got str"})


def test_a_client_that_leaves_cancels_its_call(server: ServerProcess, folder: Path) -> None:
    for path, body, note in (("wait", {"forever": True}, "cancelled"), ("count", {"n": 10**9}, "closed")):
        for one in (note, "waiting"):
            (folder / one).unlink(missing_ok=True)
        data = json.dumps(body).encode()
        host, port = server.http.split(":")
        with socket.create_connection((host, int(port))) as connection:
            head = f"POST /{path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(data)}\r\n\r\n"
            connection.sendall(head.encode() + data)
            if path == "count":
                assert connection.recv(100)
            else:
                until((folder / "waiting").exists)  # a call that has not begun leaves no note
                assert answer(server, "wait", {"forever": False}) == (200, "waited")
        until((folder / note).exists)


def test_readers_that_are_slow_hold_up_nobody(server: ServerProcess) -> None:
    host, port = server.http.split(":")
    slow = [socket.create_connection((host, int(port))) for _ in range(30)]
    body = b'{"n": 10000}'
    for connection in slow:
        connection.sendall(b"POST /flood HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    for connection in slow:
        assert connection.recv(1)  # it has begun, and nobody reads on
    status, data, _ = post(server, "flood", {"n": 3}, Accept="application/x-ndjson")
    assert (status, len(data.splitlines())) == (200, 3)
    for connection in slow:
        connection.close()


def test_a_name_that_nobody_has_is_not_found(server: ServerProcess) -> None:
    assert post(server, "nobody", {})[0] == 404
    connection = http.client.HTTPConnection(server.http, timeout=60)
    connection.request("GET", "/add")
    assert connection.getresponse().status == 405
    connection.close()
