"""The socket of instances: what is taken over, what is refused, and that nothing refused stays open."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alipes.attached.assignment import AssignmentSocket

TEXT = b"alipes-instance-1"

SETUP = {
    "setup": {
        "schema": 1,
        "model_name": "m",
        "model_version": 1,
        "model_file": "attached",
        "version_directory": "/r/m/1",
        "model_directory": "/r/m",
        "model_config": "{}",
        "decoupled": False,
        "max_batch_size": 0,
        "batches": False,
        "inputs": [],
        "outputs": [],
        "framework": None,
        "endpoint": False,
    },
    "instance": {"name": "m_0_0", "index": 0, "kind": "CPU", "device_id": 0},
}


@pytest.fixture
def assignments() -> Iterator[AssignmentSocket]:
    opened = AssignmentSocket()
    yield opened
    opened.close()


def memory(text: str) -> int:
    file = os.memfd_create("setup")
    os.write(file, text.encode())
    os.lseek(file, 0, os.SEEK_SET)
    return file


def send(assignments: AssignmentSocket, text: bytes, files: list[int]) -> None:
    """Sends a packet as the server does, and keeps nothing of it."""
    with socket.socket(fileno=os.dup(assignments.descriptor)) as server:
        socket.send_fds(server, [text], files)
    for file in files:
        os.close(file)


def files(setup: Any = SETUP) -> list[int]:
    """What is handed over for an instance."""
    return [memory(""), memory(""), memory(json.dumps(setup)), os.eventfd(0), os.eventfd(0)]


def opened() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def test_an_instance_comes_with_its_descriptors(assignments: AssignmentSocket) -> None:
    before = opened()
    send(assignments, TEXT, files())
    assignment = assignments.receive()
    assert assignment is not None
    assert (assignment.setup.model_name, assignment.setup.instance.name) == ("m", "m_0_0")
    numbers = (assignment.link, assignment.requests, assignment.doorbell, assignment.lifeline)
    assert not any(os.get_inheritable(descriptor) for descriptor in numbers)
    assignment.close()
    assert opened() == before


@pytest.mark.parametrize(
    ("text", "count", "refusal"),
    [
        (b"alipes-instance-2", 5, "expected b'alipes-instance-1'"),
        (b"a", 5, "expected b'alipes-instance-1'"),
        (TEXT, 4, "handed 4 descriptors over, expected 5"),
        (TEXT, 0, "handed 0 descriptors over, expected 5"),
    ],
)
def test_what_another_release_hands_over_is_refused(
    assignments: AssignmentSocket, text: bytes, count: int, refusal: str
) -> None:
    before = opened()
    numbers = files()
    for descriptor in numbers[count:]:
        os.close(descriptor)
    send(assignments, text, numbers[:count])
    with pytest.raises(ValueError, match=refusal):
        assignments.receive()
    assert opened() == before


def test_a_setup_of_another_schema_is_refused(assignments: AssignmentSocket) -> None:
    before = opened()
    send(assignments, TEXT, files({**SETUP, "setup": {**SETUP["setup"], "schema": 2}}))
    with pytest.raises(ValueError, match="has schema 2, this worker knows 1"):
        assignments.receive()
    assert opened() == before


def test_more_descriptors_than_there_is_room_for_are_an_error(assignments: AssignmentSocket) -> None:
    before = opened()
    send(assignments, TEXT, [os.eventfd(0) for _ in range(20)])
    with pytest.raises(OSError, match="no descriptor left"):
        assignments.receive()
    assert opened() == before


def test_a_socket_that_is_ended_gives_nothing_now_or_later(assignments: AssignmentSocket) -> None:
    assignments.end()
    assert assignments.receive() is None
    assert assignments.receive() is None
