"""Servers that people come from, each in an environment of its own, with the programs that the pages show."""

from __future__ import annotations

import http.client
import json
import sys
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
# The bench is a tool of the project's folder, and no package that is installed.
sys.path.insert(0, str(_ROOT))

from bench.document import Document  # noqa: E402
from bench.models.scripts import written_by  # noqa: E402
from bench.servers.endpoint import Endpoint  # noqa: E402
from bench.servers.file_servers import start_mlserver, start_torchserve  # noqa: E402
from bench.servers.programs import APPS, Program  # noqa: E402

__all__ = [
    "APPS",
    "Document",
    "Program",
    "environment_of",
    "post",
    "start",
    "start_mlserver",
    "start_torchserve",
    "written_by",
]

_TIMEOUT_S = 60.0


def environment_of(name: str) -> Path | None:
    """The environment of a peer, where `make clients` or the bench made it."""
    places = {_ROOT / ".venv-clients" / name: "made", _ROOT / "bench" / ".envs" / name: "complete"}
    return next((folder for folder, mark in places.items() if (folder / mark).exists()), None)


def start(program: Program, document: Document) -> Endpoint:
    """Starts a peer's program; its process is a context manager."""
    folder = environment_of(program.environment)
    assert folder is not None
    return program.start(folder, document)


def post(address: str, path: str, content: object) -> tuple[int, Any]:
    """Status, and the answer's document where the status is 200."""
    connection = http.client.HTTPConnection(address, timeout=_TIMEOUT_S)
    try:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        text = response.read()
    finally:
        connection.close()
    return response.status, json.loads(text) if response.status == http.client.OK else None
