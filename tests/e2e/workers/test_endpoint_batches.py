"""How many calls a worker is given at once, and how they are counted."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.call_models import add_call_model
from support.notes import Notes
from support.processes import under_way
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

Start = Callable[..., ServerProcess]

# Holds the first execution until the test lets it go; answers calls and tensors with the number of requests of their
# execution. `slow` calls take their time.
COUNTS = """
class TritonPythonModel:
    def execute(self, requests):
        if not (NOTES / "begun").exists():
            note("begun")
            await_note("release")
        for request in requests:
            if is_call(request) and body(request) == b"slow":
                time.sleep(0.01)
        size = len(requests)
        return [
            reply(str(size).encode()) if is_call(request) else answer(Y=np.full(given(request).shape, size, np.int32))
            for request in requests
        ]
"""


@pytest.fixture
def callers() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as pool:
        yield pool


def ask(server: ServerProcess, path: str, body: bytes = b"") -> bytes:
    connection = http.client.HTTPConnection(server.http, timeout=TIMEOUT_S)
    connection.request("POST", path, body)
    answer = connection.getresponse()
    read = answer.read()
    assert answer.status == 200, read
    connection.close()
    return read


def stats(server: ServerProcess) -> dict[str, Any]:
    connection = http.client.HTTPConnection(server.http, timeout=TIMEOUT_S)
    connection.request("GET", "/v2/models/counts/stats")
    (found,) = json.loads(connection.getresponse().read())["model_stats"]
    connection.close()
    return dict(found)


def test_calls_and_tensors_share_a_batch(
    repository: Path, start: Start, notes: Notes, callers: ThreadPoolExecutor
) -> None:
    add_call_model(repository, "counts", COUNTS, config="max_batch_size: 8\ndynamic_batching { }")
    server = start()
    tensor = {"name": "X", "shape": [1, 2], "datatype": "INT32", "data": [1, 2]}
    infer = json.dumps({"inputs": [tensor]}).encode()
    first = callers.submit(ask, server, "/counts")
    notes.read("begun")
    calls = [callers.submit(ask, server, "/counts") for _ in range(3)]
    until(lambda: under_way(server, "counts") == 4)
    tensors = [callers.submit(ask, server, "/v2/models/counts/infer", infer) for _ in range(2)]
    until(lambda: under_way(server, "counts") == 6)
    notes.write("release")
    assert first.result() == b"1"
    sizes = [int(call.result()) for call in calls]
    sizes += [json.loads(one.result())["outputs"][0]["data"][0] for one in tensors]
    # Tensors of open shapes are batched with others of their shape alone, calls with calls.
    assert sorted(sizes) == [2, 2, 3, 3, 3]
    by_size = {one["batch_size"]: one["compute_infer"]["count"] for one in stats(server)["batch_stats"]}
    assert by_size == {1: 1, 2: 1, 3: 1}


def test_quick_calls_of_a_model_that_does_not_batch_go_together(
    repository: Path, start: Start, notes: Notes, callers: ThreadPoolExecutor
) -> None:
    add_call_model(repository, "counts", COUNTS)
    notes.write("begun")
    # Of small memory a worker that does not batch gets one request at a time.
    server = start("--worker-memory=full")
    # The worker learns that calls are quick.
    until(lambda: ask(server, "/counts") == b"1")
    for _ in range(100):
        ask(server, "/counts")

    def all_at_once() -> set[bytes]:
        return set(callers.map(lambda _: ask(server, "/counts"), range(64)))

    until(lambda: all_at_once() - {b"1"}, "never more than one")
    counts = stats(server)
    # Each ran by itself, however many were brought at once.
    assert [one["batch_size"] for one in counts["batch_stats"]] == [1]
    assert counts["inference_count"] == counts["execution_count"] == counts["batch_stats"][0]["compute_infer"]["count"]


def test_slow_calls_of_a_model_that_does_not_batch_go_alone(
    repository: Path, start: Start, notes: Notes, callers: ThreadPoolExecutor
) -> None:
    add_call_model(repository, "counts", COUNTS)
    notes.write("begun")
    server = start()
    assert set(callers.map(lambda _: ask(server, "/counts", b"slow"), range(48))) == {b"1"}
