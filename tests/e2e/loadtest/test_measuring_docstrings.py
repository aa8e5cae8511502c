"""The examples in the docstrings of what measures work as they are shown."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from alipes import loadtest, tune
from alipes.advise import advise
from alipes.loadtest import Candidate, Closed, Measuring
from support.models import add_model, times
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

LOAD: Mapping[str, Any] = {
    "run": loadtest.run,
    "compare": loadtest.compare,
    "Candidate": Candidate,
    "Closed": Closed,
    "Measuring": Measuring,
}


def follow(function: Callable[..., Any], names: Mapping[str, Any], **addresses: str) -> None:
    """Runs the examples of a docstring, with the real addresses in the place of the usual ones."""
    text = inspect.getdoc(function) or ""
    for usual, real in ((8000, addresses.get("http")), (8001, addresses.get("grpc"))):
        text = text.replace(f"localhost:{usual}", real or f"localhost:{usual}")
    test = doctest.DocTestParser().get_doctest(text, dict(names), function.__name__, filename=None, lineno=0)
    assert test.examples
    written: list[str] = []
    assert doctest.DocTestRunner(verbose=False).run(test, out=written.append).failed == 0, "".join(written)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double", times(2.0))
    return serve_module(repository)


@pytest.mark.parametrize("function", [loadtest.run, loadtest.compare])
def test_the_example_of_a_load_test_prints_what_it_shows(function: Callable[..., Any], server: ServerProcess) -> None:
    follow(function, LOAD, http=server.http, grpc=server.grpc)


def test_the_example_of_advice_prints_what_it_shows(server: ServerProcess) -> None:
    names = {**LOAD, "advise": advise, "ThreadPoolExecutor": ThreadPoolExecutor}
    follow(advise, names, http=server.http, grpc=server.grpc)


@pytest.mark.slow("starts a server for each configuration")
def test_the_example_of_a_search_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_model(tmp_path / "models", "double", times(2.0))
    monkeypatch.chdir(tmp_path)
    follow(tune.run, {"run": tune.run, "Measuring": Measuring})
