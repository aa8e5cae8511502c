"""The examples in the docstrings of the clients work as they are shown: readers write programs from these alone."""

from __future__ import annotations

import asyncio
import doctest
import inspect
from collections.abc import Callable

import alipes
import pytest
from support.models import add_model, times
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double", times(2.0))
    return serve_module(repository)


@pytest.mark.parametrize("name", ["Client", "AsyncClient", "StreamClient"])
def test_an_example_prints_what_it_shows(name: str, server: ServerProcess) -> None:
    text = inspect.getdoc(getattr(alipes, name)) or ""
    names = {name: getattr(alipes, name), "asyncio": asyncio}
    test = doctest.DocTestParser().get_doctest(
        text.replace("localhost:8001", server.grpc), names, name, filename=None, lineno=0
    )
    assert test.examples
    written: list[str] = []
    outcome = doctest.DocTestRunner(verbose=False).run(test, out=written.append)
    assert outcome.failed == 0, "".join(written)
