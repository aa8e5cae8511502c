"""One model calls another by name; steps before and after a model run in processes of their own."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alipes import Client
from support.server import ServerProcess

APP = '''
import dataclasses
import os
from collections.abc import Iterator
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
def calls(what: str) -> list[str]:
    """Calls each of the others."""
    if what == "error":
        alipes.call("choosy", x=-1)
    if what == "nobody":
        alipes.call("nobody", x=1)
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
    return serve_module(folder / "app.py", str(folder / "models"))


def answer(server: ServerProcess, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(server.http, timeout=60)
    connection.request("POST", f"/{path}", json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    found = response.status, json.loads(response.read())
    connection.close()
    return found


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
    assert (status, "Model 'nobody' is not ready" in document["error"]) == (500, True)
    assert answer(server, "calls_async", {"x": -1}) == (500, {"error": "x is negative"})


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
    import alipes

    @alipes.model
    class Holder:
        def setup(self, device: str) -> None:
            self.device = device

        def predict(self, x: int) -> str:
            return f"{x} on {self.device}"

    @alipes.model(batch=True)
    def lengths(texts: list[str]) -> list[int]:
        return [len(text) for text in texts]

    assert alipes.call("holder", x=1) == "1 on cpu"
    assert alipes.call("lengths", texts="abc") == 3
    with pytest.raises(alipes.NotFound, match="no model 'other' is in this process"):
        alipes.call("other")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("@alipes.model(before=int)\ndef f(x: int): ...\n", "cannot be"),
        (
            "def b(x: int) -> int: ...\n@alipes.model(before=b)\nasync def f(x: int): ...\n",
            "make it an ordinary function",
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
