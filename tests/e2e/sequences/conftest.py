"""Servers of models whose requests come in sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.sequence_callers import Caller
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]


@pytest.fixture
def call(repository: Path, serve: Serve, request: pytest.FixtureRequest) -> Iterator[Callable[[], Caller]]:
    """Serves the test's repository when it is first called; each call gives a client of its own."""
    protocol = getattr(request, "param", "http")
    servers: list[ServerProcess] = []
    with ExitStack() as stack:

        def connect() -> Caller:
            if not servers:
                servers.append(serve(repository))
            return stack.enter_context(Caller(servers[0], protocol))

        yield connect
