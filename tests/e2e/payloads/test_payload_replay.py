"""Requests that a server logged, sent again by `alipes loadtest`."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from alipes import Client
from support.command import alipes
from support.models import add_model, times
from support.server import ServerProcess
from support.waiting import TIMEOUT_S

Serve = Callable[..., ServerProcess]


@pytest.fixture
def log(repository: Path, serve: Serve, tmp_path: Path) -> Path:
    """Of a server that got three requests: over gRPC, of V1, and one with a key among its parameters."""
    add_model(repository, "double", times(columns=2))
    place = tmp_path / "log"
    server = serve(repository, f"--payload-log-url={place.as_uri()}", "--payload-log-redact=key")
    with Client(server.grpc) as client:
        client.infer("double", {"X": np.float32([[1, 2]])})
        client.infer("double", {"X": np.float32([[3, 4]])}, parameters={"key": "secret"})
    body = json.dumps({"instances": [[5, 6]]}).encode()
    with urllib.request.urlopen(f"http://{server.http}/v1/models/double:predict", body, timeout=TIMEOUT_S) as answer:
        assert json.loads(answer.read()) == {"predictions": [[10, 12]]}
    assert server.stop() == 0
    return place


def test_what_was_logged_is_sent_again(log: Path, repository: Path, serve: Serve) -> None:
    server = serve(repository)
    done = alipes(
        "loadtest", "--replay", str(log), f"--url=http://{server.http}", "--count=20", "--check=first", "--json"
    )
    assert done.code == 0
    assert "1 of 3 recorded requests are not sent: 1 have values that were redacted" in " ".join(done.err.split())
    (level,) = json.loads(done.out)["levels"]
    assert (level["answers"], level["failed"]) == (20, 0)
    with Client(server.http) as client:
        (counts,) = client.statistics("double")
        # Of the check, and so of the warm-up, there may be some besides.
        assert int(counts["inference_stats"]["success"]["count"]) >= 20
        assert int(counts["inference_stats"]["fail"]["count"]) == 0
    done = alipes("loadtest", "double", "--replay", str(log), f"--url=grpc://{server.grpc}", "--count=3")
    assert done.code == 0
    assert "2 of 3 recorded requests are not sent" in " ".join(done.err.split())
