"""A server that follows KServe's list of models, as Kubernetes replaces it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from alipes import Client
from alipes.errors import AlipesError
from alipes.types import ModelState
from support.config_map import ConfigMap
from support.models import add_model, times
from support.server import ServerProcess
from support.waiting import until


@pytest.fixture
def places(tmp_path: Path) -> list[Path]:
    for name in ("one", "two"):
        add_model(tmp_path / "stores", name, times(columns=2))
    return [tmp_path / "stores" / name / "1" for name in ("one", "two")]


def is_served(client: Client, model: str) -> bool:
    try:
        return bool(client.is_model_ready(model))
    except AlipesError:
        return False


def test_a_server_follows_the_list(places: list[Path], tmp_path: Path, serve: Callable[..., ServerProcess]) -> None:
    volume = ConfigMap(tmp_path / "configs")
    volume.write(("a", places[0]))
    words = (f"--model-list={volume.file}", "--model-control-mode=poll", "--repository-poll-secs=1")
    server = serve(*words)
    with Client(f"http://{server.http}") as client:
        assert is_served(client, "a")  # once the server is ready
        volume.write(("b", places[1]), ("missing", tmp_path / "missing"))
        until(lambda: is_served(client, "b") and not is_served(client, "a"), "the list is followed")
        (missing,) = [one for one in client.models() if one.name == "missing"]
        assert missing.state is ModelState.UNAVAILABLE
        assert "failed to stat file" in missing.reason
