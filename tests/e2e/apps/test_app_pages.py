"""`/openapi.json` and `/docs`: every function is described, and every example that stands there works."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.server import ServerProcess
from support.waiting import until

APP = '''
import dataclasses
import datetime
import enum
from collections.abc import Iterator
from typing import Annotated, Literal, TypedDict

import alipes
import msgspec
import numpy as np
import pydantic
from numpy.typing import NDArray
from PIL import Image


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Row:
    name: str
    colour: Colour
    values: list[float]
    more: list["Row"] = dataclasses.field(default_factory=list)


class Item(pydantic.BaseModel):
    row: str
    price: float = 1.0


class Place(TypedDict):
    city: str


@alipes.model
def plain(a: float, b: int, c: str, d: bool, e: bytes, f: list[int], g: int | None, h: float = 2.0) -> float:
    """Adds nothing.

    It is here for its types.
    """
    return a


@alipes.model
def nested(
    row: Row, item: Item, items: list[Item], place: Place, pair: tuple[int, str], by: dict[str, Row],
    word: Literal["a", "b"], when: datetime.datetime,
) -> Row:
    return row


@alipes.model
def arrays(x: Annotated[np.ndarray, np.int8, (None, 3)], y: NDArray[np.bool_], z: np.ndarray) -> NDArray[np.float32]:
    assert x.shape == (2, 3)
    return x.astype(np.float32)


@alipes.model(max_batch_size=4)
def batch(x: Annotated[np.ndarray, np.float32, (None, 3)], s: list[str]) -> tuple[NDArray[np.float32], list[str]]:
    return x, s


@alipes.model
def picture(image: Image.Image, top: int = 1) -> Image.Image:
    return image


@alipes.model
def stream(n: int) -> Iterator[int]:
    yield from range(n)


@alipes.model(example={"n": 7})
def least(n: Annotated[int, msgspec.Meta(ge=5)]) -> int:
    return n


@alipes.model
def nothing() -> None:
    return None
'''


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    pytest.importorskip("pydantic", reason="an app may use pydantic; nothing of ours needs it")
    file = tmp_path_factory.mktemp("app") / "app.py"
    file.write_text(APP)
    return serve_module(file)


def ask(server: ServerProcess, method: str, path: str, body: Any = None) -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection(server.http, timeout=60)
    headers = {"Content-Type": "application/json"} if body is not None else {}
    connection.request(method, path, json.dumps(body) if body is not None else None, headers)
    response = connection.getresponse()
    found = response.status, response.headers["content-type"], response.read()
    connection.close()
    return found


@pytest.fixture(scope="module")
def document(server: ServerProcess) -> dict[str, Any]:
    status, kind, body = ask(server, "GET", "/openapi.json")
    assert (status, kind) == (200, "application/json")
    found: dict[str, Any] = json.loads(body)
    return found


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def test_every_example_works(server: ServerProcess, document: dict[str, Any]) -> None:
    tried = []
    for path, method, operation in operations(document):
        content = operation.get("requestBody", {}).get("content", {})
        body = content["application/json"]["example"] if content else None
        status, _, answer = ask(server, method.upper(), path, body)
        assert status == 200, (path, body, answer)
        tried.append(path)
    functions = ["arrays", "batch", "least", "nested", "nothing", "picture", "plain", "stream"]
    tensors = ["arrays", "batch", "least", "plain"]
    assert not {f"/{name}" for name in functions} - {*tried}
    assert not {"/v2/health/ready"} - {*tried}
    assert {path for path in tried if path.endswith("/infer")} <= {f"/v2/models/{name}/infer" for name in tensors}


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    assert document["openapi"] == "3.1.0"
    names = set(document["components"]["schemas"])
    references = set(re.findall(r'"\$ref": "#/components/schemas/([^"]+)"', json.dumps(document)))
    assert references <= names
    assert {"nested.Row", "Error"} <= references
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in names)
    assert len({operation["operationId"] for *_, operation in operations(document)}) == len([*operations(document)])


def test_arguments_results_and_words_are_described(document: dict[str, Any]) -> None:
    plain = document["paths"]["/plain"]["post"]
    assert (plain["summary"], plain["description"]) == ("Adds nothing", "It is here for its types.")
    schema = plain["requestBody"]["content"]["application/json"]["schema"]
    assert schema["required"] == ["a", "b", "c", "d", "e", "f", "g"]
    assert schema["properties"]["h"] == {"type": "number", "default": 2.0}
    assert schema["properties"]["a"] == {"type": "number"}
    picture = document["paths"]["/picture"]["post"]
    assert set(picture["requestBody"]["content"]) == {"application/json", "multipart/form-data", "image/*"}
    assert [one["name"] for one in picture["parameters"]] == ["top"]
    assert set(picture["responses"]["200"]["content"]) == {"image/png"}
    assert "text/event-stream" in document["paths"]["/stream"]["post"]["responses"]["200"]["content"]
    arrays = document["paths"]["/arrays"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert arrays["x"]["items"] == {"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 3}


def test_the_log_names_the_page(server: ServerProcess) -> None:
    server.wait_for_output(rf"is ready; models: .*; requests to try out: http://{server.http}/docs")


def test_the_page_takes_all_that_it_needs_from_this_server(server: ServerProcess) -> None:
    status, kind, body = ask(server, "GET", "/docs")
    assert (status, kind) == (200, "text/html; charset=utf-8")
    parts = re.findall(r'(?:src|href)="([^"]+)"', body.decode())
    assert not [part for part in parts if "//" in part]
    for part in parts:
        if not part.startswith("data:"):
            assert ask(server, "GET", f"/{part}")[0] == 200, part
    assert b"SwaggerUIBundle" in ask(server, "GET", "/docs/swagger-ui-bundle.js")[2]


def test_the_pages_can_be_restricted_and_follow_the_source(tmp_path: Path, serve: Callable[..., ServerProcess]) -> None:
    file = tmp_path / "app.py"
    file.write_text("import alipes\n\n\n@alipes.model\ndef one(x: int) -> int:\n    return x\n")
    server = serve(file, "--reload")

    def paths() -> set[str]:
        return set(json.loads(ask(server, "GET", "/openapi.json")[2])["paths"])

    assert "/one" in paths()
    file.write_text(file.read_text().replace("def one", "def two"))
    until(lambda: "/two" in paths() and "/one" not in paths())
    closed = serve(file, "--http-restricted-api=openapi,endpoint:key=secret")
    assert [ask(closed, "GET", path)[0] for path in ("/openapi.json", "/docs", "/docs/start.js")] == [403, 403, 403]
    assert ask(closed, "POST", "/two", {"x": 1})[0] == 403


def test_an_example_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text("import alipes\n\n\n@alipes.model(example={'x': 'a'})\ndef one(x: int) -> int:\n    return x\n")
    with ServerProcess(file) as server:
        server.wait_for_output(r"its example= does not fit: \$\.x: expected int, got str")
        assert server.wait() == 1
