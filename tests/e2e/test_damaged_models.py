"""Damaged repositories: each model is answered for with one text, the log has no traceback, and the others serve."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.damaged import DAMAGES, add_damaged, remove_all
from support.endpoints import HttpEndpoint, Refusal
from support.models import add_model
from support.server import ServerProcess
from support.traffic import answer_of as answer_of_inference

pytestmark = pytest.mark.slow("loads more than a hundred models")

Serve = Callable[..., ServerProcess]
# A load that hangs is an error of its own.
LIMITED = "--model-load-timeout-secs=30"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A repository of all damaged models, and one that is whole."""
    folder = tmp_path_factory.mktemp("damaged") / "models"
    folder.mkdir()
    for name in DAMAGES:
        add_damaged(folder, name)
    add_model(folder, "whole")
    (folder / "odd-\udcff").mkdir()
    yield folder
    remove_all(folder)


@pytest.fixture(scope="module")
def explicit(repository: Path, serve_module: Serve) -> ServerProcess:
    return serve_module(repository, "--model-control-mode=explicit", LIMITED)


@pytest.fixture(scope="module")
def started(repository: Path, serve_module: Serve) -> dict[str, str]:
    """What the index of a server says that loads all of them at its start, by model."""
    server = serve_module(repository, LIMITED)
    with HttpEndpoint(server) as endpoint:
        found = {entry["name"]: entry.get("reason", "") for entry in endpoint.indexes()}
        assert endpoint.is_ready("whole")
    assert server.stop() == 0
    assert "Traceback" not in server.output
    return found


def answer_of(server: ServerProcess, model: str) -> str:
    with HttpEndpoint(server) as endpoint:
        try:
            endpoint.load(model)
        except Refusal as refusal:
            return f"{refusal.code}: {refusal.text}"
    return ""


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_model_is_answered_for_with_one_text(
    explicit: ServerProcess, started: dict[str, str], name: str
) -> None:
    answer = answer_of(explicit, name)
    expected = {"poll": f"INTERNAL: failed to load '{name}', failed to poll from model repository", "ready": ""}
    if DAMAGES[name].answer in expected:
        assert answer == expected[DAMAGES[name].answer]
    else:
        assert re.fullmatch(rf"INVALID_ARGUMENT: load failed for model '{name}': .+\n", answer, re.DOTALL)
        assert "Error: [Errno" not in answer
        # Of ensembles in a circle, or too deep, the start may have met another one first.
        named = ("circular dependency between ensembles: ", "ensembles stand more than ")
        said = next((words for words in named if words in started[name]), started[name])
        assert said in answer, "the start says the same"
    assert answer_of(explicit, name) == answer, "and so does the next load"
    assert "Traceback" not in explicit.output


def test_the_models_beside_them_serve(explicit: ServerProcess) -> None:
    assert answer_of(explicit, "whole") == ""
    assert answer_of_inference(explicit, "whole") == 2.0
    with HttpEndpoint(explicit) as endpoint:
        assert [entry for entry in endpoint.indexes() if entry["name"].startswith("odd")] == []


def test_a_folder_whose_name_is_no_text_is_logged_once(explicit: ServerProcess) -> None:
    assert len(re.findall(r"is passed over: its name is not UTF-8", explicit.output)) == 1
