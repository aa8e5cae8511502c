"""A server under the names of hermes follows the release that hermes was written for; another one the latest."""

from __future__ import annotations

from pathlib import Path

from alipes.client import Client
from alipes.compat.serve import serve as hermes_serve
from alipes.serve import serve
from support.containers import LOOPBACK
from support.models import add_model


def test_the_release_follows_from_the_name_of_serve(repository: Path) -> None:
    add_model(repository, "times")
    for start, release in ((hermes_serve, "2.51.0"), (serve, "2.73.0")):
        with start(repository, server_args=LOOPBACK) as instance:
            instance.wait_until_ready()
            with Client(f"http://{instance.http}") as client:
                assert client.server_metadata()["version"] == release
                assert not client.is_model_ready("nobody")
