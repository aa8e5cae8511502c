"""The file by which a server is found again."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
from pathlib import Path

import pytest
from alipes.errors import ServeError
from alipes.local_ports.lifetime import started_at
from alipes.serve.endpoints import ServerEndpoint
from alipes.serve.handle import Handle
from alipes.serve.recipe import Recipe
from alipes.serve.running import Apart

RECIPE = Recipe("n", "/models", None, "apptainer", None, False, ("--log-verbose=1",))
ENDPOINTS = {
    "http": ServerEndpoint("", 8000, 4000, fixed=False),
    "grpc": ServerEndpoint("127.0.0.1", 8001, 4001, fixed=False),
}
HANDLE = Handle(RECIPE, ENDPOINTS, socket.gethostname(), os.getpid(), started_at(os.getpid()), "/server.log")


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    HANDLE.save(tmp_path / "server.json")
    assert Handle.load(tmp_path / "server.json") == HANDLE
    assert [entry.name for entry in tmp_path.iterdir()] == ["server.json"]
    written = json.loads((tmp_path / "server.json").read_text())
    assert written["doors"]["http"] == {"host": "", "asked": 8000, "port": 4000, "fixed": False, "encrypted": False}


OTHERS = ["", "{}", "[]", '{"format": 2}', '{"format": 1}', '{"format": 1, "recipe": {"flags": []}}']


@pytest.mark.parametrize("text", OTHERS)
def test_a_file_that_is_no_handle_is_an_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text(text)
    with pytest.raises(ServeError, match=r"server\.json is no handle"):
        Handle.load(tmp_path / "server.json")


def test_a_handle_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ServeError, match="there is no handle"):
        Handle.load(tmp_path / "server.json")
    with pytest.raises(ServeError, match="cannot be written"):
        HANDLE.save(tmp_path / "none" / "server.json")


def test_a_remote_server_is_reached_by_its_host_name() -> None:
    elsewhere = dataclasses.replace(HANDLE, host="node17")
    assert {name: endpoint.address for name, endpoint in elsewhere.reachable().items()} == {
        "http": "node17:4000",
        "grpc": "127.0.0.1:4001",
    }
    assert HANDLE.reachable() == ENDPOINTS


def test_a_process_is_known_by_its_id_and_by_when_it_started() -> None:
    assert Apart(HANDLE.pid, HANDLE.started).ended() is None
    assert Apart(HANDLE.pid, HANDLE.started + 1).ended() == "it is gone"
    assert Apart(HANDLE.pid, HANDLE.started + 1).wait(None)
    assert not Apart(HANDLE.pid, HANDLE.started).wait(0.01)
    nobody = 2**22 + 1  # above the greatest id that there can be
    assert started_at(nobody) == -1
    assert Apart(nobody, started_at(nobody)).ended() == "it is gone"
