"""Plain HTTP requests to the endpoint of a model: what reaches the model, and what comes back."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

import pytest
from support import http2
from support.call_models import add_call_model
from support.python_models import add_python_model
from support.server import ServerProcess
from support.waiting import TIMEOUT_S

Start = Callable[..., ServerProcess]
Ask = Callable[..., "Answer"]

# Gives back what it got; tensors go from X to Y.
ECHO = """
class TritonPythonModel:
    def execute(self, requests):
        return [
            reply(body(request), content_type=told(request, "content_type") or "text/plain") if is_call(request)
            else answer(Y=given(request))
            for request in requests
        ]
"""

# Says all that it was told.
TELLS = """
class TritonPythonModel:
    def execute(self, requests):
        names = ("method", "query", "content_type")
        return [
            reply(json.dumps({name: told(request, name) for name in names}
                             | {"headers": json.loads(told(request, "headers")), "id": request.request_id()}).encode())
            for request in requests
        ]
"""

# Answers as the query string says: a JSON object of parameters of the response.
SETS = """
from urllib.parse import unquote

class TritonPythonModel:
    def execute(self, requests):
        return [reply(body(request), **json.loads(unquote(told(request, "query")))) for request in requests]
"""

# Breaks the rules in the way that the body names.
BREAKS = """
class TritonPythonModel:
    def execute(self, requests):
        return [self.broken(body(request).decode()) for request in requests]

    def broken(self, how):
        if how == "raise":
            raise ValueError("no luck")
        if how == "not found":
            error = pb_utils.TritonError("no such thing", pb_utils.TritonError.NOT_FOUND)
            return pb_utils.InferenceResponse(error=error)
        if how == "no body":
            return pb_utils.InferenceResponse([])
        if how == "two elements":
            return pb_utils.InferenceResponse([pb_utils.Tensor(BODY, np.array([b"a", b"b"], dtype=object))])
        if how == "numbers":
            return pb_utils.InferenceResponse([pb_utils.Tensor(BODY, np.arange(2))])
        return reply(b"fine")
"""

# The way that costs least.
QUICK = """
from alipes._core import call_response, read_call

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            call = read_call(request)
            if call is None:
                answers.append(answer(Y=given(request) + 1))
                continue
            data, content_type, method, query, headers = call
            told = {"content_type": content_type, "method": method, "query": query, "headers": json.loads(headers)}
            answers.append(call_response(json.dumps({"body": data.decode()} | told).encode(), 201,
                                         headers='{"X-Quick": "yes"}'))
        return answers
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Start) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_call_model(repository, "echo", ECHO, config="max_batch_size: 0")
    add_call_model(repository, "5% of ä", ECHO)
    add_call_model(repository, "batches", ECHO, config="max_batch_size: 8\ndynamic_batching { }")
    add_call_model(repository, "tells", TELLS, methods=("POST", "GET", "DELETE"))
    add_call_model(repository, "sets", SETS)
    add_call_model(repository, "breaks", BREAKS)
    add_call_model(repository, "quick", QUICK)
    add_call_model(repository, "headless", QUICK, head=False)
    add_python_model(repository, "plain")
    return serve_module(repository, "--http-max-input-size=1000000", "--cors-origins=https://app", "--log-verbose=1")


class Answer:
    """An answer that was read."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@pytest.fixture
def ask(server: ServerProcess) -> Iterator[Ask]:
    connection = http.client.HTTPConnection(server.http, timeout=TIMEOUT_S)

    def asked(
        path: str, body: Any = b"", headers: Mapping[str, str] | None = None, method: str = "POST", **more: Any
    ) -> Answer:
        connection.request(method, path, body, dict(headers or {}), **more)
        return Answer(connection.getresponse())

    yield asked
    connection.close()


def sets(response: dict[str, object]) -> str:
    """The path of a call that is answered with these parameters."""
    return "/sets?" + quote(json.dumps(response))


@pytest.mark.parametrize("model", ["echo", "batches"])
@pytest.mark.parametrize("size", [0, 1, 13, 70_000, 900_000])
def test_the_body_goes_to_the_model_and_back(ask: Ask, model: str, size: int) -> None:
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    answer = ask(f"/{model}", body, {"Content-Type": "application/x-thing"})
    assert (answer.status, answer.headers["Content-Type"], answer.body) == (200, "application/x-thing", body)
    assert answer.headers["Content-Length"] == str(size)
    assert "Server" not in answer.headers


@pytest.mark.parametrize("model", ["echo", "batches"])
def test_a_body_in_chunks_is_one_body(ask: Ask, model: str) -> None:
    answer = ask(f"/{model}", iter([b"ab", b"c" * 70_000, b"d"]), encode_chunked=True)
    assert answer.body == b"ab" + b"c" * 70_000 + b"d"
    assert ask(f"/{model}", iter([b""]), encode_chunked=True).body == b""


@pytest.mark.parametrize(("coding", "compress"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
@pytest.mark.parametrize("size", [3, 500_000])
def test_a_compressed_body_is_expanded(ask: Ask, coding: str, compress: Callable[[bytes], bytes], size: int) -> None:
    body = (b"text " * size)[:size]
    assert ask("/echo", compress(body), {"Content-Encoding": coding}).body == body
    headers = ask("/tells", compress(body), {"Content-Encoding": coding}).json["headers"]
    assert not {"content-encoding", "content-length"} & set(headers)


def test_the_answer_is_compressed_where_the_client_wants_that(ask: Ask) -> None:
    answer = ask("/echo", b"long " * 1000, {"Accept-Encoding": "gzip"})
    assert (answer.headers["Content-Encoding"], answer.headers["Vary"]) == ("gzip", "Accept-Encoding")
    assert gzip.decompress(answer.body) == b"long " * 1000


def test_the_model_sees_what_the_request_says(ask: Ask) -> None:
    told = ask(
        "/tells?a=1&b=%20x",
        "{}",
        {"Content-Type": "application/json", "X-Mine": "ä", "Cookie": 'a="1"', "X-Request-Id": "seven"},
    ).json
    assert (told["method"], told["query"], told["content_type"]) == ("POST", "a=1&b=%20x", "application/json")
    assert told["id"] == "seven"
    headers = told["headers"]
    assert (headers["x-mine"], headers["cookie"], headers["content-length"]) == ("ä", 'a="1"', "2")
    assert "connection" not in headers and "transfer-encoding" not in headers and "host" in headers


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_an_endpoint_takes_the_methods_that_it_names(ask: Ask, method: str) -> None:
    answer = ask("/tells?q", method=method)
    assert (answer.json["method"], answer.json["query"]) == (method, "q")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD", "OPTIONS"])
def test_an_endpoint_refuses_other_methods(ask: Ask, method: str) -> None:
    answer = ask("/tells", b"x", method=method)
    assert (answer.status, answer.headers["Allow"]) == (405, "POST, GET, DELETE")
    hint = "send POST /tells with the arguments as a JSON object; GET /docs shows an example"
    error = {"error": f"Method Not Allowed; {hint}"}
    assert (json.loads(answer.body) if method != "HEAD" else error) == error


def test_status_type_headers_and_cookies_are_the_models(ask: Ask) -> None:
    headers = json.dumps({"X-One": "1", "Set-Cookie": ["a=1; Path=/", "b=2"]})
    response = {"status": 418, "content_type": "text/plain; charset=utf-8", "headers": headers}
    answer = ask(sets(response), b"short and stout")
    assert (answer.status, answer.headers["Content-Type"]) == (418, "text/plain; charset=utf-8")
    assert (answer.headers["X-One"], answer.headers.get_all("Set-Cookie")) == ("1", ["a=1; Path=/", "b=2"])
    assert answer.body == b"short and stout"


def test_an_answer_without_content_leaves_the_connection_sound(ask: Ask) -> None:
    answer = ask(sets({"status": 204}), b"ignored")
    assert (answer.status, answer.body) == (204, b"")
    assert ask("/echo", b"next").body == b"next"


@pytest.mark.parametrize(
    ("response", "fault"),
    [
        ({"status": 99}, "its status is 99, expected 200 to 599"),
        ({"status": "200"}, "its parameter 'alipes.status' is of another type than it has to be"),
        ({"content_type": "a\nb"}, 'its content type "a\\nb" is none'),
        ({"headers": "[]"}, "expected a JSON object of texts and lists of texts"),
        ({"headers": '{"content-length": "1"}'}, "'content-length' is not a model's to give"),
        ({"headers": '{"a b": "1"}'}, "'a b' names no header"),
    ],
)
def test_what_cannot_be_sent_is_an_error_that_says_why(ask: Ask, response: dict[str, object], fault: str) -> None:
    answer = ask(sets(response), b"x")
    assert (answer.status, answer.headers["Content-Type"]) == (500, "application/json")
    assert fault in answer.json["error"]


@pytest.mark.parametrize(
    ("how", "status", "fault"),
    [
        ("raise", 500, "ValueError: no luck"),
        ("not found", 404, "no such thing"),
        ("no body", 500, "it has no output 'alipes.body' with one element of BYTES"),
        ("two elements", 500, "it has no output 'alipes.body' with one element of BYTES"),
        ("numbers", 500, "it has no output 'alipes.body' with one element of BYTES"),
    ],
)
def test_an_error_of_the_model_is_a_json_object(ask: Ask, how: str, status: int, fault: str) -> None:
    answer = ask("/breaks", how.encode())
    assert (answer.status, answer.headers["Content-Type"]) == (status, "application/json")
    assert fault in answer.json["error"]
    assert ask("/breaks", b"well").body == b"fine"


def test_a_body_that_is_too_large_is_refused(ask: Ask) -> None:
    answer = ask("/echo", b"x" * 1_000_001)
    assert (answer.status, "more than the 1000000 bytes that are allowed" in answer.json["error"]) == (413, True)
    assert ask("/echo", iter([b"x" * 600_000] * 2), encode_chunked=True).json == answer.json
    assert ask("/echo", gzip.compress(b"x" * 1_000_001), {"Content-Encoding": "gzip"}).json == answer.json
    assert ask("/echo", b"x" * 1_000_000).status == 200


def test_an_unknown_compression_is_refused(ask: Ask) -> None:
    answer = ask("/echo", b"x", {"Content-Encoding": "br"})
    assert (answer.status, answer.headers["Accept-Encoding"]) == (501, "gzip, deflate")
    assert ask("/echo", gzip.compress(b"x" * 100)[:-9], {"Content-Encoding": "gzip"}).status == 400


def test_an_endpoint_is_found_whatever_its_name(ask: Ask) -> None:
    assert ask("/" + quote("5% of ä"), b"hello").body == b"hello"
    assert "/5%25%20of%20%C3%A4" in ask("/openapi.json", b"", method="GET").json["paths"]


def test_the_page_lists_the_endpoints(ask: Ask) -> None:
    answer = ask("/openapi.json", b"", method="GET")
    assert (answer.status, "/echo" in answer.json["paths"], "/plain" in answer.json["paths"]) == (200, True, False)
    assert ask("/docs", b"", method="GET").status == 200
    assert ask("/docs", b"{}").status == 405


@pytest.mark.parametrize("path", ["/nobody", "/plain", "/echo/", "/echo/x", "/v1", "/metrics"])
@pytest.mark.parametrize("method", ["POST", "GET"])
def test_any_other_path_does_not_exist(ask: Ask, path: str, method: str) -> None:
    answer = ask(path, b"{}", method=method)
    assert (answer.status, answer.headers["Content-Type"]) == (404, "text/plain")
    assert answer.json["error"].startswith("Not Found; ")


@pytest.mark.parametrize("model", ["echo", "batches"])
def test_tensors_reach_the_model_as_before(ask: Ask, model: str) -> None:
    shape = [1, 2] if model == "batches" else [2]
    tensor = {"name": "X", "shape": shape, "datatype": "INT32", "data": [3, 4]}
    answer = ask(f"/v2/models/{model}/infer", json.dumps({"inputs": [tensor]}))
    assert [(one["name"], one["data"]) for one in answer.json["outputs"]] == [("Y", [3, 4])]
    metadata = ask(f"/v2/models/{model}", method="GET").json
    assert [port["name"] for port in metadata["inputs"] + metadata["outputs"]] == ["X", "Y"]


@pytest.mark.parametrize("name", ["alipes.body", "Z"])
def test_the_input_of_calls_is_none_of_tensor_requests(ask: Ask, name: str) -> None:
    tensor = {"name": name, "shape": [1], "datatype": "BYTES", "data": ["x"]}
    answer = ask("/v2/models/echo/infer", json.dumps({"inputs": [tensor]}))
    assert (answer.status, "X" in answer.json["error"]) == (400, True)


def test_a_document_comes_without_the_head_that_no_model_looks_at(ask: Ask) -> None:
    told = ask("/headless?a=1", "[1]", {"Content-Type": "application/json", "X-Mine": "1"}).json
    expected = {"body": "[1]", "content_type": "application/json", "method": "POST", "query": "", "headers": {}}
    assert told == expected
    other = ask("/headless?a=1", "x", {"Content-Type": "text/plain", "X-Mine": "1"}).json
    assert (other["content_type"], other["query"], other["headers"]["x-mine"]) == ("text/plain", "a=1", "1")


def test_the_quick_way_says_the_same(ask: Ask) -> None:
    answer = ask("/quick?a=1", "größe".encode(), {"Content-Type": "text/plain", "X-Mine": "1"})
    assert (answer.status, answer.headers["X-Quick"], answer.headers["Content-Type"]) == (
        201,
        "yes",
        "application/json",
    )
    told = answer.json
    assert told["headers"].pop("x-mine") == "1"
    assert told["headers"]["content-type"] == "text/plain"
    told.pop("headers")
    assert told == {"body": "größe", "content_type": "text/plain", "method": "POST", "query": "a=1"}
    tensor = {"name": "X", "shape": [1], "datatype": "INT32", "data": [3]}
    assert ask("/v2/models/quick/infer", json.dumps({"inputs": [tensor]})).json["outputs"][0]["data"] == [4]


def test_a_call_counts_like_any_request(ask: Ask) -> None:
    def counts() -> tuple[int, int, int]:
        (stats,) = ask("/v2/models/batches/stats", method="GET").json["model_stats"]
        return stats["inference_count"], stats["inference_stats"]["success"]["count"], stats["execution_count"]

    before = counts()
    answer = ask("/batches", b"x", {"X-Request-Id": "mine", "Origin": "https://app"})
    assert (answer.headers["X-Request-Id"], answer.headers["Access-Control-Allow-Origin"]) == ("mine", "https://app")
    assert counts() == tuple(count + 1 for count in before)


def test_the_access_line_names_the_model(server: ServerProcess, ask: Ask) -> None:
    ask("/tells?secret", b"x", {"X-Request-Id": "line-me"})
    line = server.wait_for_output(r".*line-me.*/tells.*|.*/tells.*line-me.*")[0]
    assert "tells" in line and "secret" not in line


def test_a_page_of_another_origin_may_ask_first(ask: Ask) -> None:
    headers = {"Origin": "https://app", "Access-Control-Request-Method": "POST"}
    answer = ask("/echo", headers=headers, method="OPTIONS")
    assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (204, "https://app")


def test_http2_calls_as_well(server: ServerProcess) -> None:
    body = b"x" * 10_000
    with http2.Connection(server.http) as connection:
        connection.send(http2.request(1, "POST", "/echo?q", {"content-type": "a/b"}, end=False))
        connection.send(http2.frame(http2.DATA, http2.END_STREAM, 1, body))
        head = connection.next(http2.HEADERS)
        assert head.payload[0] == 0x88, "the indexed field `:status: 200`"
        read = b""
        while len(read) < len(body):
            read += connection.next(http2.DATA).payload
        assert read == body


def test_a_call_that_breaks_off_never_reaches_the_model(server: ServerProcess, ask: Ask) -> None:
    host, port = server.http.split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
    assert ask("/echo", b"whole").body == b"whole"
