"""Explainers as models of an app: `:explain` of V1 and tensors of V2, in front of a predictor at another server."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path

import alipes
import numpy as np
import pytest
from PIL import Image
from support.kserve_script import Answer, ask
from support.notes import Notes
from support.server import ServerProcess

pytestmark = pytest.mark.extra("explain")

PREDICTOR = """
import os
import time
from pathlib import Path
from typing import Annotated

import alipes
import numpy as np

NOTES = Path(os.environ["NOTES"])


@alipes.model(max_batch_size=16)
def weigh(x: Annotated[np.ndarray, np.float64, (None, 3)]) -> Annotated[np.ndarray, np.float64, (None, 2)]:
    with (NOTES / "sizes").open("a") as file:
        file.write(f"{len(x)}\\n")
    if (NOTES / "slow").exists():
        time.sleep(0.05)
    return np.stack([x @ [1.0, 10.0, 0.0], -x[:, 0]], axis=1)


@alipes.model(max_batch_size=8)
def liked(text: list[str]) -> Annotated[np.ndarray, np.float64, (None,)]:
    return np.array([float("good" in one) for one in text])


@alipes.model(max_batch_size=8)
def bright(picture: Annotated[np.ndarray, np.float32, (None, 8, 8, 3)]) -> Annotated[np.ndarray, np.float32, (None,)]:
    return picture[:, :4, :4].mean(axis=(1, 2, 3))
"""

EXPLAINERS = """
import alipes
import numpy as np
from alipes.explainers import Limits, PictureExplainer, TabularExplainer, TextExplainer

few = Limits(passes=3)
weighed = alipes.Predictor("weigh")
weigh = TabularExplainer(weighed, np.zeros((4, 3)), columns=["a", "b", "c"], limits=few, seed=1).model("weigh")
hurried = TabularExplainer(weighed, np.ones((4, 3)), limits=Limits(calls=2)).model("hurried")
short = TabularExplainer(weighed, np.ones((4, 3)), limits=Limits(calls=6, passes=1000), target=0).model("short")
brief = TabularExplainer(weighed, np.ones((40, 3)), limits=Limits(seconds=0.2, passes=10000)).model("brief")
liked = TextExplainer(alipes.Predictor("liked"), limits=few).model("liked")
bright = PictureExplainer(
    alipes.Predictor("bright"), (8, 8, 3), grid=(2, 2), scale=1 / 255, limits=few
).model("bright")
"""


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Notes:
    return Notes(tmp_path_factory.mktemp("notes"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("apps")
    (folder / "weigher.py").write_text(PREDICTOR)
    (folder / "explainers.py").write_text(EXPLAINERS)
    return folder


@pytest.fixture(scope="module")
def predictor(serve_module: Callable[..., ServerProcess], folder: Path, notes: Notes) -> ServerProcess:
    return serve_module(folder / "weigher.py", environment=notes.environment)


@pytest.fixture(scope="module")
def explainer(serve_module: Callable[..., ServerProcess], folder: Path, predictor: ServerProcess) -> ServerProcess:
    words = (f"--predictor_host={predictor.grpc}", "--predictor_protocol=grpc-v2")
    return serve_module(folder / "explainers.py", *words)


def explain(server: ServerProcess, model: str, instances: list[object]) -> Answer:
    return ask(f"http://{server.http}/v1/models/{model}:explain", {"instances": instances})


def test_rows_are_explained_over_v1_in_batches_of_the_predictor(explainer: ServerProcess, notes: Notes) -> None:
    answer = explain(explainer, "weigh", [[1.0, 2.0, 3.0], {"a": 2.0, "b": 0.0, "c": 1.0}])
    assert answer.status == 200, answer.body
    first, second = answer.document["explanations"]
    assert first["attributions"] == pytest.approx([1.0, 20.0, 0.0])
    assert second["attributions"] == pytest.approx([2.0, 0.0, 0.0])
    assert (first["parts"], first["approximate"], first["passes"]) == (["a", "b", "c"], False, 3)
    sizes = [int(line) for line in notes.read("sizes").split()]
    assert max(sizes) == 16
    assert explain(explainer, "weigh", [[1.0, 2.0, 3.0]]).document["explanations"] == [first]


def test_rows_are_explained_over_v2_too(explainer: ServerProcess) -> None:
    for address in (f"grpc://{explainer.grpc}", f"http://{explainer.http}"):
        with alipes.Client(address) as client:
            found = client.infer("weigh", {"rows": np.array([[1.0, 2.0, 3.0]])})
            assert found["attributions"] == pytest.approx(np.array([[1.0, 20.0, 0.0]]))
            assert found["base"] + found["attributions"].sum(axis=1) == pytest.approx(found["prediction"])
            assert (found["target"].tolist(), found["approximate"].tolist()) == ([0], [False])


def test_texts_and_pictures_are_explained(explainer: ServerProcess) -> None:
    (text,) = explain(explainer, "liked", ["a very good day"]).document["explanations"]
    assert dict(zip(text["parts"], text["attributions"], strict=True))["good "] == pytest.approx(1.0)
    with alipes.Client(f"grpc://{explainer.grpc}") as client:
        (over_v2,) = client.infer("liked", {"texts": ["a very good day"]})["explanations"]
        assert json.loads(over_v2) == text
    file = io.BytesIO()
    Image.new("RGB", (8, 8), "white").save(file, "PNG")
    encoded = {"b64": base64.b64encode(file.getvalue()).decode()}
    (picture,) = explain(explainer, "bright", [{"picture": encoded}]).document["explanations"]
    assert np.array(picture["attributions"]) == pytest.approx(np.array([[1.0, 0.0], [0.0, 0.0]]))


def test_an_explanation_that_cannot_begin_says_which_limit_to_raise(explainer: ServerProcess) -> None:
    answer = explain(explainer, "hurried", [[1.0, 2.0, 3.0]])
    assert answer.status == 504
    assert "Limits(calls=4)" in answer.document["error"]


def test_an_explanation_that_is_ended_says_that_it_is_approximate(explainer: ServerProcess, notes: Notes) -> None:
    (by_calls,) = explain(explainer, "short", [[1.0, 2.0, 3.0]]).document["explanations"]
    assert by_calls["approximate"]
    assert by_calls["base"] + sum(by_calls["attributions"]) == pytest.approx(by_calls["prediction"])
    notes.write("slow")
    try:
        answer = explain(explainer, "brief", [[1.0, 2.0, 3.0]] * 3)
    finally:
        notes.remove("slow")
    assert answer.status == 504
    assert "seconds=0.4" in answer.document["error"]


@pytest.mark.parametrize("instances", [[[1.0]], [["x", 1.0, 2.0]], [], [{"a": 1.0}]])
def test_instances_that_do_not_fit_are_the_callers_fault(explainer: ServerProcess, instances: list[object]) -> None:
    assert explain(explainer, "weigh", instances).status == 400


def test_an_explainer_names_the_predictor_that_is_away(serve: Callable[..., ServerProcess], folder: Path) -> None:
    from support.ports import unused_address

    server = serve(folder / "explainers.py", f"--predictor_host={unused_address()}")
    answer = explain(server, "weigh", [[1.0, 2.0, 3.0]])
    assert answer.status == 503
    assert "predictor 'weigh' at http://" in answer.document["error"]
