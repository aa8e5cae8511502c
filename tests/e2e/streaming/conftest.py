"""Two servers of one repository, the fixture `repository` of a module: sequences move from one to the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]


@pytest.fixture(scope="module")
def server(serve_module: Serve, repository: Path) -> ServerProcess:
    return serve_module(repository)


@pytest.fixture(scope="module")
def other(serve_module: Serve, repository: Path) -> ServerProcess:
    return serve_module(repository)
