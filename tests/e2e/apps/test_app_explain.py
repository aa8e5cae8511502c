"""`explain=`, and the method `explain` of a class, answer `:explain` of V1; other models have no explainer."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import alipes as qv
import numpy as np
import pytest
from support.kserve_script import Answer, ask
from support.python_models import add_python_model
from support.server import ServerProcess

APP = '''
import asyncio
from collections.abc import Iterator
from typing import Annotated

import alipes
import numpy as np


@alipes.model
class Weigher:
    """Weighs rows."""

    def setup(self):
        self.weights = [1.0, 10.0]

    def predict(self, row: list[float]) -> float:
        return sum(weight * value for weight, value in zip(self.weights, row))

    def explain(self, instances: list[list[float]], scale: float = 1.0) -> dict[str, list[list[float]]]:
        """Says what each value adds."""
        shares = [[scale * weight * value for weight, value in zip(self.weights, row)] for row in instances]
        return {"explanations": shares}


@alipes.model(max_batch_size=8, max_delay=0.01)
class Batcher:
    def predict(self, x: Annotated[np.ndarray, np.float32, (None,)]) -> Annotated[np.ndarray, np.float32, (None,)]:
        return x * 2

    def explain(self, instances: list[float]) -> dict[str, list[str]]:
        return {"explanations": [f"2 * {value}" for value in instances]}


@alipes.model
class Patient:
    async def setup(self):
        self.loop = asyncio.get_running_loop()

    async def predict(self, n: int) -> int:
        await asyncio.sleep(0)
        return n

    async def explain(self, instances: list[int]) -> bool:
        await asyncio.sleep(0)
        return asyncio.get_running_loop() is self.loop


@alipes.model
class Failing:
    def predict(self) -> int:
        return 1

    def explain(self, why: str) -> int:
        if why == "unsupported":
            raise alipes.errors.Unsupported("not this one")
        raise KeyError(why)


@alipes.model
class Counter:
    def predict(self, n: int) -> Iterator[int]:
        yield from range(n)

    def explain(self, n: int) -> int:
        return n


@alipes.model
def plain(a: float) -> float:
    return a


def why(instances: list[float], scale: float = 1.0) -> dict[str, list[float]]:
    """Says what each value counts."""
    return {"explanations": [scale * value for value in instances]}


@alipes.model(explain=why)
def halver(a: float) -> float:
    return a / 2


async def slowly(instances: list[int]) -> list[str]:
    await asyncio.sleep(0)
    return [f"n is {one}" for one in instances]


@alipes.model(explain=slowly)
async def waiter(n: int) -> int:
    await asyncio.sleep(0)
    return n


def shift(a: float) -> float:
    return a + 1


@alipes.model(before=shift, explain=why)
def shifted(a: float) -> float:
    return 2 * a


@alipes.model(after=shift)
class Scaler:
    def setup(self):
        self.factor = 3.0

    def predict(self, a: float) -> float:
        return self.factor * a

    async def explain(self, instances: list[float]) -> dict[str, list[float]]:
        """Says the factor of each value."""
        await asyncio.sleep(0)
        if instances == [0.0]:
            raise alipes.errors.Unsupported("nothing is nothing")
        return {"explanations": [self.factor for _ in instances]}


def count(n: int) -> int:
    return n


@alipes.model(before=count)
class Steps:
    def predict(self, n: int) -> Iterator[int]:
        yield from range(n)

    def explain(self, n: int) -> int:
        return n
'''


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    file = tmp_path_factory.mktemp("app") / "app.py"
    file.write_text(APP)
    return serve_module(file)


def explain(server: ServerProcess, model: str, body: object) -> Answer:
    return ask(f"http://{server.http}/v1/models/{model}:explain", body)


def test_explain_answers_with_what_it_returns(server: ServerProcess) -> None:
    answer = explain(server, "weigher", {"instances": [[1, 2], [3, 4]]})
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.document == {"explanations": [[1, 20], [3, 40]]}
    assert explain(server, "weigher", {"instances": [[1, 2]], "scale": 2}).document == {"explanations": [[2, 40]]}
    assert ask(f"http://{server.http}/weigher", {"row": [1, 2]}).document == 21
    versioned = ask(f"http://{server.http}/v1/models/weigher/versions/1:explain", {"instances": [[1, 2]]})
    assert versioned.document == {"explanations": [[1, 20]]}


@pytest.mark.parametrize(
    ("model", "body", "explanation", "call", "answer"),
    [
        ("halver", {"instances": [1, 2], "scale": 3}, {"explanations": [3, 6]}, {"a": 3}, 1.5),
        ("waiter", {"instances": [1]}, ["n is 1"], {"n": 3}, 3),
        ("shifted", {"instances": [1, 2]}, {"explanations": [1, 2]}, {"a": 3}, 8),
        ("scaler", {"instances": [1, 2]}, {"explanations": [3, 3]}, {"a": 3}, 10),
    ],
)
def test_functions_and_models_with_steps_are_explained(
    server: ServerProcess, model: str, body: object, explanation: object, call: object, answer: object
) -> None:
    found = explain(server, model, body)
    assert (found.status, found.document) == (200, explanation)
    assert ask(f"http://{server.http}/{model}", call).document == answer


def test_explanations_and_batches_do_not_mix(server: ServerProcess) -> None:
    def both(n: int) -> tuple[object, object]:
        answers = ask(f"http://{server.http}/batcher", {"x": n}), explain(server, "batcher", {"instances": [n]})
        return answers[0].document, answers[1].document

    with ThreadPoolExecutor(8) as threads:
        found = [*threads.map(both, range(32))]
    assert found == [(2 * n, {"explanations": [f"2 * {float(n)}"]}) for n in range(32)]


def test_an_async_explain_runs_on_the_loop_of_its_model(server: ServerProcess) -> None:
    assert ask(f"http://{server.http}/patient", {"n": 3}).document == 3
    assert explain(server, "patient", {"instances": [1]}).document is True


@pytest.mark.parametrize(
    ("model", "body", "status", "text"),
    [
        ("weigher", {"instances": [["a"]]}, 400, "$.instances[0][0]: expected float, got str"),
        ("weigher", {"rows": []}, 400, "rows"),
        ("weigher", b"{", 400, "the body is no JSON"),
        ("failing", {"why": "unsupported"}, 501, "not this one"),
        ("failing", {"why": "it"}, 500, "KeyError: 'it'"),
        ("plain", {"instances": [1]}, 501, "model 'plain' has no explainer"),
        ("counter", {"n": 1}, 501, "model 'counter' has no explainer"),
        ("steps", {"n": 1}, 501, "model 'steps' has no explainer"),
        ("halver", {"instances": ["a"]}, 400, "$.instances[0]: expected float, got str"),
        ("scaler", {"instances": ["a"]}, 400, "$.instances[0]: expected float, got str"),
        ("scaler", {"instances": [0]}, 501, "nothing is nothing"),
        ("waiter", {"instances": ["a"]}, 400, "$.instances[0]: expected int, got str"),
        ("nobody", {"instances": [1]}, 404, "Model with name nobody does not exist."),
    ],
)
def test_what_cannot_be_explained_has_a_status(
    server: ServerProcess, model: str, body: object, status: int, text: str
) -> None:
    answer = explain(server, model, body)
    assert answer.status == status
    assert text in answer.document["error"]


def test_the_page_describes_what_explain_takes(server: ServerProcess) -> None:
    document = ask(f"http://{server.http}/openapi.json").document
    operation = document["paths"]["/v1/models/weigher:explain"]["post"]
    assert operation["summary"] == "Says what each value adds"
    content = operation["requestBody"]["content"]["application/json"]
    assert list(content["schema"]["properties"]) == ["instances", "scale"]
    assert explain(server, "weigher", content["example"]).status == 200
    assert "/v1/models/counter:explain" not in document["paths"]
    assert document["paths"]["/v1/models/halver:explain"]["post"]["summary"] == "Says what each value counts"
    assert document["paths"]["/v1/models/scaler:explain"]["post"]["summary"] == "Says the factor of each value"


class Doubler:
    """A class that is exported."""

    def predict(self, x: Annotated[np.ndarray, np.float32, (2,)]) -> Annotated[np.ndarray, np.float32, (2,)]:
        return x * 2

    def explain(self, instances: list[list[float]]) -> dict[str, int]:
        return {"rows": len(instances)}


def test_an_exported_class_explains_too(tmp_path: Path, serve: Callable[..., ServerProcess]) -> None:
    repository = qv.ModelRepository(tmp_path / "models")
    repository.add("doubler", "python").export_version(Doubler)
    server = serve(tmp_path / "models")
    assert explain(server, "doubler", {"instances": [[1, 2]]}).document == {"rows": 1}


@pytest.mark.parametrize(
    ("method", "text"),
    [
        ("def explain(self, *rows): pass", r"model 'odd\.explain': argument '\*rows' cannot be given by name"),
        ("def explain(self):\n        yield 1", r"model 'odd\.explain': an explanation is one value"),
    ],
)
def test_an_explain_that_cannot_be_served_is_refused(tmp_path: Path, method: str, text: str) -> None:
    source = f"import alipes\n\n\n@alipes.model\nclass Odd:\n    def predict(self):\n        pass\n\n    {method}\n"
    (tmp_path / "app.py").write_text(source)
    with ServerProcess(tmp_path / "app.py") as server:
        server.wait_for_output(text)
        assert server.wait() == 1


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ("def odd():\n    yield 1", "model 'odd': its answer is a stream, which explain= cannot explain"),
        ("def odd(a: int) -> int:\n    return a", r"model 'odd\.explain': argument '\*rows' cannot be given by name"),
    ],
)
def test_an_explain_option_that_cannot_be_served_is_refused(tmp_path: Path, lines: str, text: str) -> None:
    function = "def why(*rows):\n    pass" if "rows" in text else "def why():\n    pass"
    (tmp_path / "app.py").write_text(f"import alipes\n\n\n{function}\n\n\n@alipes.model(explain=why)\n{lines}\n")
    with ServerProcess(tmp_path / "app.py") as server:
        server.wait_for_output(text)
        assert server.wait() == 1


TRITON = """
class TritonPythonModel:
    def execute(self, requests):
        tensors = [pb_utils.get_input_tensor_by_name(request, "X") for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", tensor.as_numpy() * 2)]) for tensor in tensors]

    EXPLAIN
"""
PLAIN = """def explain(self, payload):
        if payload["instances"] == ["fail"]:
            raise pb_utils.TritonModelException("not this one")
        return {"explanations": np.array(payload["instances"], np.int32) * 2}"""
ASYNC = f"async {PLAIN}"
EXPLAINS = 'parameters { key: "endpoint" value { string_value: "{\\"methods\\": [], \\"explain\\": true}" } }\n'


def test_a_model_in_tritons_form_explains_by_its_method(tmp_path: Path, serve: Callable[..., ServerProcess]) -> None:
    for name, method in (("plain", PLAIN), ("waits", ASYNC)):
        config = EXPLAINS + "max_batch_size: 8\ndynamic_batching {}\n"
        add_python_model(tmp_path, name, TRITON.replace("EXPLAIN", method), config=config)
    add_python_model(tmp_path, "mute", TRITON.replace("EXPLAIN", PLAIN))
    server = serve(tmp_path)
    tensor = {"name": "X", "shape": [1, 2], "datatype": "INT32", "data": [3, 4]}

    def both(model: str) -> tuple[object, object]:
        predicted = ask(f"http://{server.http}/v2/models/{model}/infer", {"inputs": [tensor]})
        return predicted.document["outputs"][0]["data"], explain(server, model, {"instances": [1, 2]}).document

    for model in ("plain", "waits"):
        with ThreadPoolExecutor(4) as threads:
            found = [*threads.map(lambda _, model=model: both(model), range(16))]
        assert found == [([6, 8], {"explanations": [2, 4]})] * 16
        assert explain(server, model, b"{").status == 400
        failed = explain(server, model, {"instances": ["fail"]})
        assert (failed.status, "not this one" in failed.document["error"]) == (500, True)
        # It has no path of its own.
        assert ask(f"http://{server.http}/{model}", {"instances": [1]}).status == 404
    assert explain(server, "mute", {"instances": [1]}).status == 501
