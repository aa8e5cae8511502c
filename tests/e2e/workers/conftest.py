"""Servers of Python models whose files may leave notes for the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.endpoints import ENDPOINTS, Endpoint, HttpEndpoint
from support.notes import Notes
from support.server import ServerProcess

Start = Callable[..., ServerProcess]


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    """Notes between this test and its models."""
    return Notes(tmp_path / "notes")


@pytest.fixture
def start(repository: Path, notes: Notes, serve: Start) -> Start:
    """Serves the test's repository: ``start(*flags)``. Every model has to load, unless the test says otherwise."""

    def started(*flags: str, environment: dict[str, str] | None = None, all_load: bool = True) -> ServerProcess:
        server = serve(repository, *flags, environment=notes.environment | (environment or {}))
        if all_load:
            with HttpEndpoint(server) as endpoint:
                assert [one for one in endpoint.indexes() if one.get("reason")] == [], server.output
        return server

    return started


@pytest.fixture(params=ENDPOINTS)
def endpoint(request: pytest.FixtureRequest, server: ServerProcess) -> Iterator[Endpoint]:
    """A client of the test's `server`, once for each protocol."""
    with ENDPOINTS[request.param](server) as client:
        yield client


@pytest.fixture
def ask_later() -> Iterator[Callable[..., object]]:
    """Asks from another thread: ``ask_later(endpoint, model, inputs)`` gives a future."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(32) as pool:
        yield lambda endpoint, *arguments, **more: pool.submit(endpoint.ask, *arguments, **more)
