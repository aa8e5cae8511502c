"""`export_version` of functions and classes without a decorator: the same folder, and the same program, as with one."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import alipes
import numpy as np
import pytest
from alipes import repository as qv
from alipes.errors import ExportError
from numpy.typing import NDArray
from support.environments import make_venv, site_packages
from support.server import ServerProcess

FACTORS = [2.0, 3.0]
CALLS = 0
ONE = np.ones((1, 1), np.float32)
SEEN: dict[str, int] = {}


class Base:
    """Is written along: the class inherits from it."""

    suffix = "!"


class Shout(Base):
    """Makes a text loud."""

    def __init__(self) -> None:
        self.count = 0

    def predict(self, text: str) -> dict[str, Any]:
        """Counts as well."""
        self.count += 1
        return {"text": text.upper() + self.suffix, "count": self.count}


def steps(n: int) -> Iterator[int]:
    yield from range(n)


async def late(x: float) -> float:
    return x


def scaled(x: NDArray[np.float64], by: int = 0) -> NDArray[np.float64]:
    found: NDArray[np.float64] = x * FACTORS[by]
    return found


def counted(x: np.ndarray) -> np.ndarray:
    global CALLS  # noqa: PLW0603 - what the test is about
    CALLS += 1
    SEEN["rows"] = SEEN.get("rows", 0) + len(x)
    return x * 0 + CALLS + 100 * SEEN["rows"]


def mixed(strain: np.ndarray, scale: np.ndarray = ONE) -> tuple[np.ndarray, np.ndarray]:
    return strain * scale, strain.sum(axis=1)


def words(text: np.ndarray) -> np.ndarray:
    return np.array([[one + b"!" for one in row] for row in text], object)


def answer(server: ServerProcess, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(server.http, timeout=60)
    connection.request("POST", f"/{path}", json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    found = response.status, response.read()
    connection.close()
    return found


@pytest.fixture
def repository(tmp_path: Path) -> qv.ModelRepository:
    return qv.ModelRepository(tmp_path / "models")


def test_annotations_say_what_undecorated_things_take(
    repository: qv.ModelRepository, serve: Callable[..., ServerProcess]
) -> None:
    for name, thing in (("shout", Shout), ("steps", steps), ("late", late), ("scaled", scaled)):
        repository.add(name, "python").export_version(thing)
        assert repository.models[name].export_version(thing) == f"{name}/2/model.py"
    server = serve(str(repository.fs))
    assert answer(server, "shout", {"text": "a"}) == (200, b'{"text":"A!","count":1}')
    assert answer(server, "shout", {"text": "b"}) == (200, b'{"text":"B!","count":2}')
    assert answer(server, "steps", {"n": 2}) == (200, b"data: 0\n\ndata: 1\n\n")
    assert answer(server, "late", {"x": 2}) == (200, b"2.0")
    assert answer(server, "scaled", {"x": [1, 2], "by": 1}) == (200, b"[3.0,6.0]")
    assert answer(server, "scaled", {"x": ["a"]})[0] == 422
    with alipes.Client(server.grpc) as client:
        assert client.infer("scaled", {"x": np.ones(2)})["output_0"].tolist() == [2, 2]


def test_a_function_on_arrays_answers_documents_too(
    repository: qv.ModelRepository, serve: Callable[..., ServerProcess]
) -> None:
    model = repository.add("mixed", "python", max_batch_size=8)
    model.export_version(
        mixed, input_shapes={"signal": (None, 3), "factor": (None, 1)}, output_names=["product", "total"]
    )
    assert [one.optional for one in model.config.input] == [False, True]
    repository.add("words", "python").export_version(
        words, input_shapes={"text": (None, 1)}, input_dtypes={"text": "BYTES"}
    )
    server = serve(str(repository.fs))
    assert answer(server, "mixed", {"strain": [1, 2, 3], "scale": [2]}) == (200, b"[[2.0,4.0,6.0],6.0]")
    assert answer(server, "mixed", {"strain": [1, 2, 3]}) == (200, b"[[1.0,2.0,3.0],6.0]")
    assert answer(server, "mixed", {"strain": [1, 2]}) == (
        422,
        b'{"error":"$.strain: expected an array of float32 of shape [3], got shape [2]"}',
    )
    assert answer(server, "words", {"text": [["a"], ["b"]]}) == (200, b'[["a!"],["b!"]]')
    with alipes.Client(server.grpc) as client:
        found = client.infer("mixed", {"signal": np.ones((2, 3), np.float32)})
        assert (found["product"].tolist(), found["total"].tolist()) == ([[1, 1, 1]] * 2, [[3], [3]])


def test_what_a_function_keeps_in_its_module_belongs_to_its_instance(
    repository: qv.ModelRepository, serve: Callable[..., ServerProcess]
) -> None:
    repository.add("counted", "python").export_version(counted, input_shapes={"x": (None, 1)}, check=False)
    server = serve(str(repository.fs))
    bodies = [answer(server, "counted", {"x": [[0]]})[1] for _ in range(3)]
    assert bodies == [b"[[101.0]]", b"[[202.0]]", b"[[303.0]]"]


def test_the_configuration_decides_on_batches_after_the_export(
    repository: qv.ModelRepository, serve: Callable[..., ServerProcess]
) -> None:
    model = repository.add("mixed", "python", max_batch_size=8)
    model.export_version(mixed, input_shapes={"strain": (None, 3)})
    model.config.max_batch_size = 2
    model.config.write()
    server = serve(str(repository.fs))
    with alipes.Client(server.grpc) as client:
        assert client.infer("mixed", {"strain": np.ones((2, 3), np.float32)})["output_1"].tolist() == [[3], [3]]
        with pytest.raises(alipes.InvalidArgument):
            client.infer("mixed", {"strain": np.ones((3, 3), np.float32)})


def test_a_name_of_the_server_has_no_endpoint(repository: qv.ModelRepository, caplog: pytest.LogCaptureFixture) -> None:
    model = repository.add("metrics", "python")
    model.export_version(scaled)
    assert "the server has /metrics for itself; ask over /v2" in caplog.text
    assert "endpoint" not in model.config.parameters


def test_an_environment_with_numpy_alone_answers_tensors(
    repository: qv.ModelRepository, serve: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    model = repository.add("mixed", "python")
    model.export_version(mixed, input_shapes={"strain": (None, 3)})
    venv = make_venv(tmp_path / "venv")
    (site_packages(venv) / "msgspec.py").write_text(
        "raise ModuleNotFoundError(name='msgspec')"
    )  # as if it were not there
    model.config.parameters["EXECUTION_ENV_PATH"].string_value = str(venv)
    model.config.write()
    server = serve(str(repository.fs))
    with alipes.Client(server.grpc) as client:
        assert client.infer("mixed", {"strain": np.ones((2, 3), np.float32)})["output_1"].tolist() == [3, 3]
    status, body = answer(server, "mixed", {"strain": [[1, 2, 3]]})
    assert (status, "needs msgspec: pip install msgspec" in body.decode()) == (501, True)


PLAIN = """
class TritonPythonModel:
    def execute(self, requests):
        raise ValueError("is not called here")
"""


def described(server: ServerProcess) -> dict[str, Any]:
    """The paths of the API page but for those of the protocols; empty where there is no page."""
    connection = http.client.HTTPConnection(server.http, timeout=60)
    connection.request("GET", "/openapi.json")
    response = connection.getresponse()
    body = response.read()
    connection.close()
    paths = json.loads(body)["paths"] if response.status == 200 else {}
    return {path: one for path, one in paths.items() if not path.startswith(("/v1/", "/v2"))}


def test_the_page_lists_models_of_a_repository_while_they_serve(
    repository: qv.ModelRepository, serve: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    repository.add("shout", "python").export_version(Shout)
    repository.add("mixed", "python", max_batch_size=8).export_version(mixed, input_shapes={"strain": (None, 3)})
    folder = tmp_path / "models" / "plain"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text(PLAIN)
    endpoint = json.dumps(json.dumps({"methods": ["GET", "PUT"]}))
    (folder / "config.pbtxt").write_text(
        f'backend: "python"\nparameters {{ key: "endpoint" value {{ string_value: {endpoint} }} }}\n'
        'input { name: "x" data_type: TYPE_FP32 dims: 1 }\noutput { name: "y" data_type: TYPE_FP32 dims: 1 }\n'
    )
    server = serve(str(repository.fs), "--model-control-mode=explicit")
    assert described(server) == {}
    with alipes.Client(server.http) as client:
        for name in ("shout", "mixed", "plain"):
            client.load(name)
        paths = described(server)
        assert sorted(paths) == ["/mixed", "/plain", "/shout"]
        assert paths["/shout"]["post"]["summary"] == "Makes a text loud"
        content = paths["/mixed"]["post"]["requestBody"]["content"]["application/json"]
        assert content["schema"]["required"] == ["strain"]
        assert content["schema"]["properties"]["strain"]["minItems"] == 3
        assert answer(server, "mixed", content["example"])[0] == 200
        assert (sorted(paths["/plain"]), "requestBody" in paths["/plain"]["put"]) == (["get", "put"], True)
        client.unload("shout")
        assert sorted(described(server)) == ["/mixed", "/plain"]
    connection = http.client.HTTPConnection(server.http, timeout=60)
    connection.request("GET", "/docs")
    assert connection.getresponse().status == 200
    connection.close()


def test_a_body_above_the_limit_is_413_at_every_endpoint(
    repository: qv.ModelRepository, serve: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    app = tmp_path / "app.py"
    app.write_text("import alipes\n\n@alipes.model\ndef same(text: str) -> str:\n    return text\n")
    repository.add("shout", "python").export_version(Shout)
    server = serve(app, str(repository.fs), "--http-max-input-size=1000")
    for path in ("same", "shout"):
        assert answer(server, path, {"text": "a"})[0] == 200
        status, body = answer(server, path, {"text": "a" * 1000})
        assert (status, b"more than the 1000 bytes that are allowed" in body) == (413, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"input_shapes": {"x": (None,)}}, "leave out input_shapes="),
        ({"max_batch_size": 4}, "the function takes batches"),
    ],
)
def test_options_that_contradict_annotations_are_refused(
    repository: qv.ModelRepository, options: dict[str, Any], said: str
) -> None:
    with pytest.raises((ExportError, alipes.ConfigError), match=said):
        repository.add("m", "python").export_version(Shout, **options)
    assert not list(Path(str(repository.fs)).glob("m/1/*"))
