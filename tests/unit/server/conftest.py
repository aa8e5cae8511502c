"""A lifecycle over an in-memory data plane."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from alipes.config.load import parse_flags
from alipes.repository.repository import Repository
from alipes.server.index import Index
from alipes.server.lifecycle import Lifecycle
from alipes.server.log import log
from alipes.server.planner import Planner
from support.data_plane import DataPlane
from support.folders import CONFIG, backend_of, make_model

MakeModel = Callable[..., Path]


@pytest.fixture
def server_log(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What the server's log says, each line once: pytest adds handlers to it where a test before has configured it."""
    monkeypatch.setattr(log, "handlers", [])
    monkeypatch.setattr(log, "propagate", True)
    return caplog


@pytest.fixture
def data_plane() -> DataPlane:
    return DataPlane()


@pytest.fixture
def model(repository: Path) -> MakeModel:
    """Makes the folder of a model: ``model(name, *versions, config=...)``."""

    def make(name: str, *versions: int, config: str | None = CONFIG) -> Path:
        return make_model(repository, name, versions or (1,), config)

    return make


@pytest.fixture
def index(data_plane: DataPlane) -> Index:
    made = Index(data_plane.set_index, strict_readiness=True)
    made.open()
    return made


@pytest.fixture
def planner(repository: Path) -> Planner:
    return Planner(parse_flags([str(repository)], {}), backend_of=backend_of)


@pytest.fixture
def lifecycle(repository: Path, data_plane: DataPlane, index: Index, planner: Planner) -> Lifecycle:
    return Lifecycle(data_plane, Repository([repository]), planner, index)  # type: ignore[arg-type]
