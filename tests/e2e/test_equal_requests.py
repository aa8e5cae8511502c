"""Equal requests at the same time: where answers are kept, one is computed and answers all; if it cannot, each is."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from support.endpoints import Endpoint, GrpcEndpoint, HttpEndpoint, Refusal, Reply
from support.models import add_model
from support.notes import Notes
from support.python_models import add_python_model
from support.server import ServerProcess
from support.waiting import until

Serve = Callable[..., ServerProcess]

CACHED = "response_cache { enable: true }\n"
LOCAL = "--cache-config=local,size=1048576"

# Y is X, N counts the executions. One with X below 100 waits for the test; the first below 0 fails.
HELD = """
class TritonPythonModel:
    executions = 0
    lock = threading.Lock()

    def execute(self, requests):
        return [self.one(int(given(request).flat[0]), given(request)) for request in requests]

    def one(self, x, given):
        with self.lock:
            TritonPythonModel.executions += 1
            number = self.executions
        if x < 100:
            note(f"began {x}")
            await_note(f"go {x}")
        if x < 0 and number == 1:
            raise ValueError("the first fails")
        return answer(Y=given, N=np.array([number], np.int32))
"""
SIGNATURE = "X: INT32[-1] -> Y: INT32[-1], N: INT32[1]"


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path / "notes")


@pytest.fixture
def server(repository: Path, notes: Notes, serve: Serve) -> ServerProcess:
    add_python_model(repository, "held", HELD, signature=SIGNATURE, config=CACHED)
    return serve(repository, LOCAL, environment=notes.environment)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as threads:
        yield threads


def pending(server: ServerProcess) -> float:
    """Requests that wait for an instance, or for the answer to one like them."""
    connection = http.client.HTTPConnection(server.metrics)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    lines = [line for line in text.splitlines() if line.startswith("nv_inference_pending_request_count{")]
    return sum(float(line.split()[-1]) for line in lines)


def later(
    pool: ThreadPoolExecutor, kind: Callable[[ServerProcess], Endpoint], server: ServerProcess, x: int, name: str = ""
) -> Future[Reply]:
    """The answer to a request over a connection of its own."""

    def ask() -> Reply:
        with kind(server) as endpoint:
            return endpoint.ask("held", {"X": [x]}, request_id=name)

    return pool.submit(ask)


def counters(server: ServerProcess, model: str) -> dict[str, int]:
    with HttpEndpoint(server) as endpoint:
        found = endpoint.statistics(model)
    counts = {name: int(tally["count"]) for name, tally in found["inference_stats"].items()}
    return counts | {"executions": int(found["execution_count"])}


def test_one_execution_answers_all_that_ask_the_same_meanwhile(
    server: ServerProcess, notes: Notes, pool: ThreadPoolExecutor
) -> None:
    first = later(pool, HttpEndpoint, server, 1)
    notes.read("began 1")
    others = [later(pool, HttpEndpoint, server, 1, f"r{number}") for number in range(4)]
    others += [later(pool, GrpcEndpoint, server, 1) for _ in range(3)]
    until(lambda: pending(server) == 7)
    notes.write("go 1")
    assert [one.result()["N"].tolist() for one in [first, *others]] == [[1]] * 8
    counts = counters(server, "held")
    assert (counts["executions"], counts["success"], counts["cache_hit"], counts["cache_miss"]) == (1, 8, 7, 1)
    assert pending(server) == 0


def test_the_failure_of_the_first_is_not_that_of_the_others(
    server: ServerProcess, notes: Notes, pool: ThreadPoolExecutor
) -> None:
    first = later(pool, HttpEndpoint, server, -1)
    notes.read("began -1")
    others = [later(pool, kind, server, -1) for kind in (HttpEndpoint, HttpEndpoint, GrpcEndpoint)]
    until(lambda: pending(server) == 3)
    notes.write("go -1")
    with pytest.raises(Refusal, match="the first fails"):
        first.result()
    assert [one.result()["Y"].tolist() for one in others] == [[-1]] * 3
    counts = counters(server, "held")
    assert (counts["success"], counts["fail"]) == (3, 1)


def test_a_caller_who_goes_leaves_the_answer_to_the_others(
    server: ServerProcess, notes: Notes, pool: ThreadPoolExecutor
) -> None:
    first = post(server, "held", 2)
    notes.read("began 2")
    second = later(pool, HttpEndpoint, server, 2)
    until(lambda: pending(server) == 1)
    first.close()
    notes.write("go 2")
    assert second.result()["N"].tolist() == [1]


def test_followers_of_a_rejected_request_are_computed(repository: Path, serve: Serve, pool: ThreadPoolExecutor) -> None:
    # Executes two rows at a time, and not before there are two.
    delay = "dynamic_batching { preferred_batch_size: 2 max_queue_delay_microseconds: 1000000000 }"
    add_model(repository, "pairs", config=f"max_batch_size: 2 {delay} {CACHED}")
    server = serve(repository, LOCAL)

    def ask(value: float) -> list[list[float]]:
        with HttpEndpoint(server) as endpoint:
            return list(endpoint.ask("pairs", {"X": np.full((1, 2), value, np.float32)})["Y"].tolist())

    first = post(server, "pairs", 1)
    until(lambda: pending(server) == 1)
    second = pool.submit(ask, 1)
    until(lambda: pending(server) == 2)
    first.close()
    until(lambda: counters(server, "pairs")["fail"] == 1 and pending(server) == 1)
    third = pool.submit(ask, 3)
    assert (second.result(), third.result()) == ([[2, 2]], [[6, 6]])
    assert counters(server, "pairs")["success"] == 2


def test_others_do_not_wait_for_it(repository: Path, notes: Notes, serve: Serve, pool: ThreadPoolExecutor) -> None:
    group = "instance_group { count: 2 kind: KIND_CPU }\n"
    add_python_model(repository, "held", HELD, signature=SIGNATURE, config=CACHED + group)
    server = serve(repository, LOCAL, environment=notes.environment)
    first = later(pool, HttpEndpoint, server, 3)
    notes.read("began 3")
    assert later(pool, HttpEndpoint, server, 100).result()["Y"].tolist() == [100]
    notes.write("go 3")
    assert first.result()["Y"].tolist() == [3]


def post(server: ServerProcess, model: str, value: int) -> http.client.HTTPConnection:
    """A request whose answer is not read yet."""
    shape, datatype = ([1], "INT32") if model == "held" else ([1, 2], "FP32")
    x = {"name": "X", "datatype": datatype, "shape": shape, "data": [value] * shape[-1]}
    connection = http.client.HTTPConnection(server.http)
    connection.request("POST", f"/v2/models/{model}/infer", json.dumps({"inputs": [x]}))
    return connection
