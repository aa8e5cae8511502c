"""What a call may keep of an instance: no more than its time, and nothing once its caller has left."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path

import pytest
from support.notes import Notes
from support.server import ServerProcess
from support.waiting import TIMEOUT_S

APP = """
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import alipes
from alipes.worker.apps.callers import check_caller

NOTES = Path(os.environ["NOTES"])


@dataclass
class Long:
    parts: int

    def __post_init__(self):
        if self.parts < 1000:  # those of the example on the API page are few
            return
        (NOTES / "begun").write_text("")
        try:
            while True:
                check_caller()
                time.sleep(0.001)
        except BaseException as error:
            (NOTES / "ended").write_text(type(error).__name__)
            raise


@alipes.model
def reads(x: Long) -> int:
    return x.parts


@alipes.model(timeout=0.5)
def limited(wait: bool) -> str:
    if wait:
        threading.Event().wait()
    return "answered"
"""


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path / "notes")


@pytest.fixture
def server(serve: Callable[..., ServerProcess], tmp_path: Path, notes: Notes) -> ServerProcess:
    file = tmp_path / "app.py"
    file.write_text(APP)
    return serve(file, environment=notes.environment)


def call(server: ServerProcess, model: str, **arguments: object) -> tuple[int, object]:
    connection = HTTPConnection(server.http, timeout=TIMEOUT_S)
    connection.request("POST", f"/{model}", json.dumps(arguments))
    answer = connection.getresponse()
    found = json.loads(answer.read())
    connection.close()
    return answer.status, found


def test_arguments_are_not_read_on_for_a_caller_that_has_left(server: ServerProcess, notes: Notes) -> None:
    host, port = server.http.rsplit(":", 1)
    body = json.dumps({"x": {"parts": 1000}})
    with socket.create_connection((host, int(port)), timeout=TIMEOUT_S) as connection:
        connection.sendall(f"POST /reads HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        notes.read("begun")
    assert notes.read("ended") == "Cancelled"
    assert call(server, "reads", x={"parts": 0}) == (200, 0)


def test_a_call_that_never_ends_is_ended_with_its_process(server: ServerProcess) -> None:
    status, document = call(server, "limited", wait=True)
    assert status == 503
    assert "one execution took longer than 0.5 s" in str(document)
    server.wait_for_output("takes requests again")
    assert call(server, "limited", wait=False) == (200, "answered")
