"""What a newcomer types over HTTP and is refused: each answer says what is there, or what to send instead."""

from __future__ import annotations

import http.client
import io
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest
from PIL import Image
from support.models import add_model
from support.server import ServerProcess
from support.waiting import TIMEOUT_S

APP = """
import dataclasses

import alipes
from PIL import Image


@dataclasses.dataclass
class Item:
    name: str
    price: float


@alipes.model
def louder(sound: list[float], rate: float = 1.0) -> list[float]:
    return [2 * one for one in sound]


@alipes.model
def add(a: float, b: float) -> float:
    return a + b


@alipes.model
def size(image: Image.Image) -> str:
    return f"{image.width} x {image.height}"


@alipes.model
def price(item: Item) -> float:
    return item.price


@alipes.model
def seen(request: alipes.Request) -> dict[str, int | str]:
    return {"bytes": len(request.body), "type": request.content_type}


@alipes.model
def table(rows: int) -> alipes.Response:
    return alipes.Response("a,b", headers={"Content-Type": "text/csv"})


@alipes.model
def busy(n: int) -> int:
    raise alipes.Overloaded("later")
"""

STATS = "GET /v2/models/stats tells what each model has done; GET /v2/health/ready says"
OPENAI = "OpenAI's API is not offered: this server takes POST /add, POST /busy, POST /v2/models/iris/infer and 5 more"
HEALTH = "Not Found; GET /v2/health/ready says whether the server is ready, GET /v2/health/live whether it runs"
IRIS = "POST /v2/models/iris/infer with tensors, or POST /v1/models/iris:predict with plain values"
LISTED = (
    "Not Found; this server takes POST /add, POST /busy, POST /v2/models/iris/infer and 5 more; POST /v2/repository"
)
LOUDER = "POST /louder with its arguments as a JSON object"
BROKEN = "version 1 of 'broken' did not load: "
TENSOR = {"name": "X", "datatype": "FP32"}

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=b"


def picture(kind: str = "JPEG") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (64, 48), "red").save(file, kind)
    return file.getvalue()


def part(name: str) -> bytes:
    head = f"--b\r\nContent-Disposition: form-data; name={name}; filename=cat.jpg\r\n\r\n"
    return head.encode() + picture() + b"\r\n--b--\r\n"


class Typed(NamedTuple):
    """A request, and the beginning of its answer."""

    method: str
    path: str
    status: int
    text: str
    body: bytes | Any = b""
    content_type: str = ""


TYPED = {
    "a function's name, misspelled": Typed("POST", "/loud", 404, f"Not Found; is 'louder' meant? {LOUDER}", {}),
    "a function's name with a slash": Typed("POST", "/louder/", 404, f"Not Found; {LOUDER}", {}),
    "a function below a prefix": Typed("POST", "/api/louder", 404, f"Not Found; {LOUDER}", {}),
    "the path of other servers": Typed("POST", "/predict", 404, LISTED, {}),
    "the path of SageMaker": Typed("POST", "/invocations", 404, LISTED, {}),
    "a path of nothing": Typed("GET", "/foo/bar", 404, LISTED),
    "the list of models": Typed("GET", "/v2/models", 404, LISTED),
    "what it has done": Typed("GET", "/status", 404, f"Not Found; {STATS}"),
    "statistics without V2": Typed("GET", "/stats", 404, f"Not Found; {STATS}"),
    "the version": Typed("GET", "/version", 404, "Not Found; GET /v2 tells the version of the server"),
    "a chat": Typed("POST", "/v1/chat/completions", 404, f"Not Found; {OPENAI}", {"messages": []}),
    "an embedding": Typed("POST", "/v1/embeddings", 404, f"Not Found; {OPENAI}", {"input": ""}),
    "health": Typed("GET", "/health", 404, HEALTH),
    "health of Kubernetes": Typed("GET", "/healthz", 404, HEALTH),
    "readiness": Typed("GET", "/ready", 404, HEALTH),
    "health of V2, misspelled": Typed("GET", "/v2/health", 404, HEALTH),
    "metrics": Typed("GET", "/metrics", 404, "Not Found; the metrics are at http://127.0.0.1:"),
    "a model of a file": Typed("POST", "/iris", 404, f"Not Found; {IRIS}", {}),
    "a verb of other servers": Typed("POST", "/v2/models/iris/predict", 404, f"Not Found; {IRIS}", {}),
    "the path of TorchServe": Typed("POST", "/predictions/iris", 404, f"Not Found; {IRIS}", {}),
    "V1 without a verb": Typed("POST", "/v1/models/iris", 405, "Method Not Allowed; send GET", {}),
    "V1 with another verb": Typed("POST", "/models/iris:predict", 404, f"Not Found; {IRIS}", {}),
    "a model that failed": Typed("POST", "/broken", 404, f"Not Found; {BROKEN}", {}),
    "a model that failed, by V2": Typed(
        "GET", "/v2/models/broken", 404, f"Request for unknown model: 'broken' has no available versions; {BROKEN}"
    ),
    "tensors for a model that failed": Typed(
        "POST",
        "/v2/models/broken/infer",
        404,
        f"Request for unknown model: 'broken' has no available versions; {BROKEN}",
        {"inputs": []},
    ),
    "a model's name, misspelled": Typed(
        "GET", "/v2/models/irsi", 404, "Request for unknown model: 'irsi' is not found; is 'iris' meant?"
    ),
    "a function that is read": Typed(
        "GET",
        "/louder",
        405,
        "Method Not Allowed; send POST /louder with the arguments as a JSON object; GET /docs shows an example",
    ),
    "tensors that are read": Typed("GET", "/v2/models/iris/infer", 405, "Method Not Allowed; send POST"),
    "readiness that is sent": Typed("POST", "/v2/health/ready", 405, "Method Not Allowed; send GET", {}),
    "too many rows": Typed(
        "POST",
        "/v2/models/iris/infer",
        400,
        "[request id: <id_unknown>] inference request batch-size must be <= 4 for 'iris'",
        {"inputs": [{**TENSOR, "shape": [5, 2], "data": [0] * 10}]},
    ),
    "too many rows for generate": Typed(
        "POST",
        "/v2/models/iris/generate",
        400,
        "[request id: <id_unknown>] inference request batch-size must be <= 4 for 'iris'",
        {"X": [[0, 0]] * 5},
    ),
    "rows for generate": Typed("POST", "/v2/models/iris/generate", 200, "", {"X": [[1, 2], [3, 4]]}),
    "an unknown argument": Typed(
        "POST", "/louder", 422, "$.sond: there is no such argument, and 'sound' is missing", {"sond": [1]}
    ),
    "an argument too many": Typed(
        "POST",
        "/louder",
        422,
        "$.loud: there is no such argument; the function takes 'sound' and 'rate'",
        {"sound": [], "loud": 1},
    ),
    "no argument at all": Typed("POST", "/louder", 422, "$.sound: is missing", {}),
    "nothing at all": Typed(
        "POST", "/louder", 422, "$.sound: is missing: the body is empty; send the arguments as a JSON object"
    ),
    "an argument in the query": Typed(
        "POST", "/louder?sound=1", 422, "$.sound: is missing: the query is not read, and the body is empty; send the"
    ),
    "a number that JSON lacks": Typed(
        "POST",
        "/louder",
        400,
        "the body is no JSON: JSON is malformed: invalid character (byte 1); JSON has no NaN: send null where",
        b"[NaN]",
        JSON,
    ),
    "a dictionary as Python prints it": Typed(
        "POST",
        "/louder",
        400,
        "the body is no JSON: JSON is malformed: object keys must be strings (byte 1); JSON puts texts in double",
        b"{'sound': [1]}",
        JSON,
    ),
    "an argument alone": Typed("POST", "/louder", 200, "", [1, 2]),
    "an argument alone, which curl calls a form": Typed("POST", "/louder", 200, "", b"[1, 2]", FORM),
    "an argument alone that does not fit": Typed("POST", "/louder", 422, "$[1]: expected float, got str", [1, "x"]),
    "one document for two arguments": Typed(
        "POST", "/add", 422, "$: expected object, got array; send an object with 'a' and 'b'", [1, 2]
    ),
    "a row as FastAPI takes it": Typed("POST", "/price", 200, "", {"name": "milk", "price": 2}),
    "a row by its name": Typed("POST", "/price", 200, "", {"item": {"name": "milk", "price": 2}}),
    "half a row": Typed(
        "POST", "/price", 422, "$.name: there is no such argument, and 'item' is missing", {"name": "milk"}
    ),
    "a picture as it is": Typed("POST", "/size", 200, "", picture(), "image/jpeg"),
    "a picture that curl calls a form": Typed("POST", "/size", 200, "", picture(), FORM),
    "a picture for a function that takes none": Typed(
        "POST",
        "/louder",
        415,
        f"a body of {FORM} that holds other bytes than text is not taken; send {JSON}",
        picture(),
        FORM,
    ),
    "a picture that is called JSON": Typed("POST", "/louder", 400, "the body is no JSON: ", picture(), JSON),
    "a picture in a form under another name": Typed(
        "POST",
        "/size",
        422,
        "$.file: there is no such argument, and 'image' is missing: send the file under that name",
        part("file"),
        MULTIPART,
    ),
    "a picture in a form": Typed("POST", "/size", 200, "", part("image"), MULTIPART),
    "a long name of an argument": Typed(
        "POST", "/louder", 422, f"$.{'x' * 60}...: there is no such argument", {"x" * 9999: 1}
    ),
    "any text for a function of the request": Typed("POST", "/seen", 200, "", b"some text", "text/plain"),
    "any bytes for a function of the request": Typed("POST", "/seen", 200, "", picture(), "image/jpeg"),
    "a media type among the headers": Typed(
        "POST",
        "/table",
        500,
        "ConfigError: Response(headers={'Content-Type': ...}): name the media type as content_type='text/csv'",
        {"rows": 1},
    ),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    """A server of an app, of a model and of one that does not load."""
    folder = tmp_path_factory.mktemp("typed")
    (folder / "app.py").write_text(APP)
    add_model(folder / "models", "iris", config="max_batch_size: 4")
    broken = add_model(folder / "models", "broken")
    (broken / "1" / "model.onnx").write_bytes(b"no model")
    return serve_module(folder / "app.py", f"--model-repository={folder / 'models'}", "--exit-on-error=false")


def ask(server: ServerProcess, typed: Typed, headers: Mapping[str, str] | None = None) -> http.client.HTTPResponse:
    is_bytes = isinstance(typed.body, bytes)
    body = typed.body if is_bytes else json.dumps(typed.body).encode()
    content_type = typed.content_type or ("" if is_bytes else JSON)
    connection = http.client.HTTPConnection(server.http, timeout=TIMEOUT_S)
    sent = {**({"Content-Type": content_type} if content_type else {}), **(headers or {})}
    connection.request(typed.method, typed.path, body, sent)
    response = connection.getresponse()
    response.content = response.read()  # type: ignore[attr-defined]
    connection.close()
    return response


@pytest.mark.parametrize("case", TYPED)
def test_what_is_typed_over_http_is_answered_with_the_way_on(server: ServerProcess, case: str) -> None:
    typed = TYPED[case]
    response = ask(server, typed)
    document = json.loads(response.content)  # type: ignore[attr-defined]
    assert response.status == typed.status, document
    if typed.status != 200:
        assert document["error"].startswith(typed.text)
        assert len(document["error"]) < 400 and document["error"].isprintable()


def test_http_at_the_port_of_grpc_is_answered_in_its_own_words(server: ServerProcess) -> None:
    connection = http.client.HTTPConnection(server.grpc, timeout=TIMEOUT_S)
    connection.request("GET", "/v2/health/ready")
    response = connection.getresponse()
    assert (response.status, response.headers["Upgrade"]) == (426, "h2c")
    assert json.loads(response.read())["error"].startswith("this port speaks gRPC, which needs HTTP/2: send this")
    connection.close()


@pytest.mark.parametrize("path", ["/", "/v2/health/ready", "/metric"])
def test_the_port_of_metrics_says_where_they_are(server: ServerProcess, path: str) -> None:
    connection = http.client.HTTPConnection(server.metrics, timeout=TIMEOUT_S)
    connection.request("GET", path)
    response = connection.getresponse()
    assert (response.status, response.read().splitlines()) == (
        200,
        [b"# GET /metrics shows the metrics; all other requests go to the server's HTTP port"],
    )
    connection.close()


def test_a_server_that_is_busy_says_when_to_come_again(server: ServerProcess) -> None:
    response = ask(server, Typed("POST", "/busy", 503, "", {"n": 1}))
    assert (response.status, response.headers["Retry-After"]) == (503, "1")


def test_a_short_answer_is_not_compressed(server: ServerProcess) -> None:
    accepts = {"Accept-Encoding": "gzip"}
    short = ask(server, Typed("POST", "/add", 200, "", {"a": 1, "b": 1}), accepts)
    assert (short.content, short.headers["Content-Encoding"]) == (b"2.0", None)  # type: ignore[attr-defined]
    long = ask(server, Typed("POST", "/louder", 200, "", {"sound": [1] * 1000}), accepts)
    assert long.headers["Content-Encoding"] == "gzip"


def test_an_answer_like_the_recorded_release_is_tritons_alone(
    tmp_path_factory: pytest.TempPathFactory, serve: Callable[..., ServerProcess]
) -> None:
    folder = tmp_path_factory.mktemp("recorded")
    add_model(folder, "iris")
    recorded = serve(folder, "--triton-release=2.51")
    for typed in (Typed("GET", "/iris", 404, ""), Typed("GET", "/v2/models/irsi", 404, "")):
        document = json.loads(ask(recorded, typed).content)  # type: ignore[attr-defined]
        assert document["error"] in ("Not Found", "Request for unknown model: 'irsi' is not found")


def test_a_server_with_restricted_requests_names_no_models(
    tmp_path_factory: pytest.TempPathFactory, serve: Callable[..., ServerProcess]
) -> None:
    folder = tmp_path_factory.mktemp("restricted")
    add_model(folder, "iris")
    restricted = serve(folder, "--http-restricted-api=model-repository:admin-key=1")
    for path in ("/iris", "/irsi", "/foo"):
        assert "POST /v2/models" not in json.loads(ask(restricted, Typed("GET", path, 404, "")).content)["error"]  # type: ignore[attr-defined]
