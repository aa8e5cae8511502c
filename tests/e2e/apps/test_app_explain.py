"""`explain` of a class answers `:explain` of V1, beside the method that predicts; other models have no explainer."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import alipes as qv
import numpy as np
import pytest
from support.kserve_script import Answer, ask
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
