"""One model calls another by name; steps before and after a model run in processes of their own."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import alipes
import numpy as np
import pytest
from alipes import Client
from support.server import ServerProcess

APP = '''
import dataclasses
import os
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, TypedDict

import alipes
import numpy as np
from numpy.typing import NDArray
from PIL import Image


@dataclasses.dataclass
class Pair:
    total: float
    words: list[str]


class Sizes(TypedDict):
    width: int
    height: int


@alipes.model
def pair(a: float, b: float = 1.0) -> Pair:
    return Pair(a + b, ["a", "b"])


@alipes.model(max_batch_size=8)
def double(x: Annotated[np.ndarray, np.float32, (None, 2)]) -> NDArray[np.float32]:
    assert x.ndim == 2
    return x * 2


@alipes.model
def table(rows: dict[str, Pair]) -> dict[str, Pair]:
    return {key: Pair(row.total + 1, row.words) for key, row in rows.items()}


@alipes.model
def count(n: int) -> Iterator[int]:
    yield from range(n)


@alipes.model
def choosy(x: int) -> int:
    if x < 0:
        raise alipes.InvalidArgument("x is negative")
    return x


@alipes.model
def raises(kind: str) -> int:
    raise getattr(alipes, kind)(f"raised {kind}")


@alipes.model
def breaks(x: int) -> int:
    return 1 // x


@alipes.model
def caught(kind: str) -> str:
    try:
        alipes.call("raises", kind=kind)
    except alipes.InferError as error:
        return type(error).__name__
    return "nothing"


@alipes.model
def calls(what: str) -> list[str]:
    """Calls each of the others."""
    if what == "error":
        alipes.call("choosy", x=-1)
    if what == "nobody":
        alipes.call("nobody", x=1)
    if what == "unknown argument":
        alipes.call("pair", c=1)
    if what == "breaks":
        alipes.call("breaks", x=0)
    if what == "absent":
        alipes.call("absent", X=np.array([5]))
    if what != "all":
        alipes.call("raises", kind=what)
    found = alipes.call("pair", a=2)
    doubled = alipes.call("double", x=[1, 2])
    rows = alipes.call("table", rows={"r": found})
    numbers = list(alipes.call("count", n=3))
    plain = alipes.call("echo", X=np.array([5]))["Y"]
    return [repr(found), str(doubled.tolist()), repr(rows), str(numbers), str(plain.tolist())]


@alipes.model
async def calls_async(x: int) -> int:
    return await alipes.call_async("choosy", x=x) + 1


def measure(image: Image.Image, scale: int = 1) -> tuple[NDArray[np.int64], int]:
    return np.array(image.size), os.getpid()


def name(size: NDArray[np.int64], before: int, main: int) -> dict[str, str]:
    return {"size": str(size.tolist()), "processes": str(len({before, main, os.getpid()}))}


@alipes.model(before=measure, after=name, before_instances=2)
def larger(size: NDArray[np.int64], before: int) -> tuple[NDArray[np.int64], int, int]:
    return size * 2, before, os.getpid()


async def looked_up(text: str, request: alipes.Request) -> tuple[str, str]:
    return text, request.headers.get("x-user", "nobody")


def signed(text: str, request: alipes.Request) -> str:
    return f"{text} {request.query.get('sign', '-')} {len(request.body)}"


@alipes.model(before=looked_up, after=signed)
async def greet(text: str, user: str, request: alipes.Request) -> str:
    """Greets a user."""
    return f"{text}, {user} {request.cookies.get('mood', '-')}"


def loud(text: str) -> str:
    if text == "d":
        raise alipes.NotFound("there is no D")
    return text.upper()


def several(text: str, times: int = 1) -> tuple[str, int]:
    return text, times


@alipes.model(before=several, after=loud)
def letters(text: str, times: int) -> Iterator[str]:
    yield from text * times


@alipes.model(before=several)
async def letters_async(text: str, times: int) -> AsyncIterator[str]:
    for letter in text * times:
        yield letter


def spread(text: str) -> NDArray[np.float32]:
    return np.array([len(text), 1], np.float32)


@alipes.model(before=spread, max_batch_size=8)
def scores(row: Annotated[np.ndarray, np.float32, (None, 2)]) -> list[float]:
    return [float(one.sum()) for one in row]
'''

ECHO = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", one.inputs()[0].as_numpy())]) for one in requests]
"""
CONFIG = """
backend: "python"
input { name: "X" data_type: TYPE_INT64 dims: 1 }
output { name: "Y" data_type: TYPE_INT64 dims: 1 }
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    folder = tmp_path_factory.mktemp("app")
    (folder / "app.py").write_text(APP)
    model = folder / "models" / "echo" / "1"
    model.mkdir(parents=True)
    (model / "model.py").write_text(ECHO)
    (model.parent / "config.pbtxt").write_text(CONFIG)
    broken = folder / "models" / "absent" / "1"
    broken.mkdir(parents=True)
    (broken / "model.py").write_text("raise ValueError('is not served')")
    (broken.parent / "config.pbtxt").write_text(CONFIG)
    return serve_module(folder / "app.py", str(folder / "models"), "--exit-on-error=false")


def post(server: ServerProcess, path: str, body: dict[str, Any], **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(server.http, timeout=60)
    connection.request("POST", f"/{path}", json.dumps(body), {"Content-Type": "application/json", **headers})
    response = connection.getresponse()
    found = response.status, response.read()
    connection.close()
    return found


def answer(server: ServerProcess, path: str, body: dict[str, Any], **headers: str) -> tuple[int, Any]:
    status, text = post(server, path, body, **headers)
    return status, json.loads(text)


def test_a_model_calls_others_of_every_kind(server: ServerProcess) -> None:
    assert answer(server, "calls", {"what": "all"}) == (
        200,
        [
            "Pair(total=3.0, words=['a', 'b'])",
            "[2.0, 4.0]",
            "{'r': Pair(total=4.0, words=['a', 'b'])}",
            "[0, 1, 2]",
            "[5]",
        ],
    )
    assert answer(server, "calls_async", {"x": 4}) == (200, 5)


def test_a_refusal_of_a_called_model_is_passed_on(server: ServerProcess) -> None:
    assert answer(server, "calls", {"what": "error"}) == (500, {"error": "x is negative"})
    status, document = answer(server, "calls", {"what": "nobody"})
    assert (status, "unknown model: 'nobody' is not found" in document["error"]) == (404, True)
    assert answer(server, "calls_async", {"x": -1}) == (500, {"error": "x is negative"})


@pytest.mark.parametrize(
    ("kind", "status", "seen"),
    [
        ("NotFound", 404, "NotFound"),
        ("NotReady", 503, "NotReady"),
        ("Overloaded", 503, "Overloaded"),
        ("DeadlineExceeded", 504, "DeadlineExceeded"),
        ("Unauthenticated", 401, "Unauthenticated"),
        ("PermissionDenied", 403, "PermissionDenied"),
        ("AlreadyExists", 409, "AlreadyExists"),
        ("Unsupported", 501, "Unsupported"),
        ("InvalidArgument", 500, "Internal"),
        ("TooLarge", 500, "Internal"),
        ("Internal", 500, "Internal"),
    ],
)
def test_an_error_keeps_its_kind_through_a_call(server: ServerProcess, kind: str, status: int, seen: str) -> None:
    assert answer(server, "calls", {"what": kind}) == (status, {"error": f"raised {kind}"})
    assert answer(server, "caught", {"kind": kind}) == (200, seen)


def test_what_a_caller_does_wrong_is_its_own_fault(server: ServerProcess) -> None:
    status, document = answer(server, "calls", {"what": "unknown argument"})
    assert (status, document["error"]) == (500, "TypeError: model 'pair' has no argument 'c'")
    status, document = answer(server, "calls", {"what": "breaks"})
    assert (status, "ZeroDivisionError" in document["error"]) == (500, True)
    status, document = answer(server, "calls", {"what": "absent"})
    assert (status, "'absent' has no available versions" in document["error"]) == (404, True), "no version of it serves"


def test_a_raised_kind_has_its_code_over_v2(server: ServerProcess) -> None:
    with Client(server.grpc) as client:
        for kind in (alipes.Overloaded, alipes.DeadlineExceeded, alipes.PermissionDenied):
            with pytest.raises(kind, match=f"raised {kind.__name__}"):
                client.infer("raises", {"kind": np.array([kind.__name__.encode()], object)})


def test_steps_may_be_async_and_see_the_request(server: ServerProcess) -> None:
    headers = {"X-User": "Ada", "Cookie": "mood=good"}
    assert answer(server, "greet?sign=yours", {"text": "Hello"}, **headers) == (200, "Hello, Ada good yours 0")
    assert answer(server, "greet", {"text": "Hello"}) == (200, "Hello, nobody - - 0")
    assert answer(server, "greet", {"text": 1})[0] == 422
    forged = {"secret": "", "headers": {"x-user": "root"}, "query": "", "method": "POST", "content_type": ""}
    with Client(server.grpc) as client:
        found = client.infer(
            "greet.before",
            {"text": np.array([b"Hello"], object)},
            parameters={"alipes.request": json.dumps(forged)},
        )
    assert found["output_1"].tolist() == [b"nobody"], "a client's parameter is no request"


def test_each_value_of_a_stream_goes_through_the_step_after_it(server: ServerProcess) -> None:
    status, text = post(server, "letters", {"text": "ab", "times": 2})
    assert (status, text.split()) == (200, [b"data:", b'"A"', b"data:", b'"B"'] * 2)
    status, text = post(server, "letters", {"text": "ab" * 100, "times": 1})
    assert (status, text.count(b"data:")) == (200, 200), "more than the step in front may keep of the model's memory"
    assert post(server, "letters_async", {"text": "c"}) == (200, b'data: "c"\n\n')
    status, text = post(server, "letters", {"text": "ad"}, Accept="application/x-ndjson")
    assert (status, text.startswith(b'"A"\n'), b"there is no D" in text) == (200, True, True)


def test_the_page_describes_the_model_in_front_of_its_steps(server: ServerProcess) -> None:
    connection = http.client.HTTPConnection(server.http, timeout=60)
    connection.request("GET", "/openapi.json")
    path = json.loads(connection.getresponse().read())["paths"]["/greet"]["post"]
    connection.close()
    assert path["summary"] == "Greets a user"
    assert list(path["requestBody"]["content"]["application/json"]["schema"]["properties"]) == ["text"]


def test_steps_run_in_processes_of_their_own(server: ServerProcess) -> None:
    import base64
    import io

    from PIL import Image

    file = io.BytesIO()
    Image.new("L", (3, 2)).save(file, "PNG")
    image = base64.b64encode(file.getvalue()).decode()
    assert answer(server, "larger", {"image": image}) == (200, {"size": "[6, 4]", "processes": "3"})
    assert answer(server, "larger", {"picture": image})[0] == 422
    assert answer(server, "scores", {"text": "four"}) == (200, 5.0)
    with Client(server.grpc) as client:
        statistics = client.statistics()
        for step in ("larger", "larger.before", "larger.main", "larger.after", "scores.before", "scores.main"):
            assert step in str(statistics)
    assert answer(server, "larger.main", {})[0] == 404, "a step has no path of its own"


def test_without_a_server_calls_stay_in_the_process() -> None:
    @alipes.model
    class Holder:
        def setup(self, device: str) -> None:
            self.device = device

        def predict(self, x: int) -> str:
            return f"{x} on {self.device}"

    @alipes.model(batch=True)
    def lengths(texts: list[str]) -> list[int]:
        return [len(text) for text in texts]

    def shorter(text: str) -> str:
        return text[1:]

    async def signed(text: str, request: alipes.Request) -> str:
        return text + request.query.get("sign", "!")

    @alipes.model(before=shorter, after=signed)
    def twice(text: str) -> str:
        return text * 2

    assert alipes.call("twice", text="xab") == "abab!"
    assert alipes.call("holder", x=1) == "1 on cpu"
    assert alipes.call("lengths", texts="abc") == 3
    with pytest.raises(alipes.NotFound, match="no model 'other' is in this process"):
        alipes.call("other")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("@alipes.model(before=int)\ndef f(x: int): ...\n", "cannot be"),
        (
            "def b(x: int):\n    yield x\n@alipes.model(before=b)\ndef f(x: int): ...\n",
            "f.before is a stream, which only the model itself can be",
        ),
        (
            "async def a(x: int):\n    yield x\n@alipes.model(after=a)\ndef f(x: int): ...\n",
            "f.after is a stream, which only the model itself can be",
        ),
        ("def b(*x: int) -> int: ...\n@alipes.model(before=b)\ndef f(x: int): ...\n", "cannot be given by name"),
    ],
)
def test_steps_that_cannot_be_are_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "app.py"
    file.write_text("import alipes\n" + text)
    with ServerProcess(file) as server:
        server.wait_for_output(said)
        assert server.wait() == 1
