"""A server of one small model, for the tests of a module."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator

import pytest
from support.models import add_model
from support.server import ServerProcess
from support.waiting import TIMEOUT_S


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    """A server of `double`."""
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    return serve_module(repository)


@pytest.fixture
def connection(server: ServerProcess) -> Iterator[http.client.HTTPConnection]:
    """A connection to it."""
    opened = http.client.HTTPConnection(server.http, timeout=TIMEOUT_S)
    yield opened
    opened.close()
