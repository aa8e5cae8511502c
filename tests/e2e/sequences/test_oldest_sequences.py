"""The strategy `oldest`: which sequences are candidates, which of them share a batch, and the order within each."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
from support.notes import Notes
from support.processes import metric
from support.python_models import add_python_model
from support.sequence_callers import Caller
from support.sequences import SequenceStream
from support.server import ServerProcess
from support.waiting import until

Serve = Callable[..., ServerProcess]

# Gives the number of requests in the batch. Each sequence counts from zero, and has one request in a batch at most.
COUNTED = """
class TritonPythonModel:
    def initialize(self, args):
        self.next = {}

    def execute(self, requests):
        ids = [int(given(request, "ID").flat[0]) for request in requests]
        assert len(set(ids)) == len(ids), ids
        for number, request in zip(ids, requests):
            if number == 0:  # a row whose sequence has no request now
                continue
            expected = 0 if given(request, "START").flat[0] else self.next[number]
            assert given(request).flat[0] == expected, (number, given(request), expected)
            self.next[number] = expected + 1
        return [answer(ROWS=np.array([[len(requests)]], np.int32)) for _ in requests]
"""
PORTS = "X: INT32[1] -> ROWS: INT32[1]"
CONTROLS = """
    control_input [
        { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
        { name: "ID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }
    ]
"""
# Longer than any test.
HOUR_US = 3_600_000_000


def scheduling(strategy: str, batch: int = 4) -> str:
    idle = f"max_sequence_idle_microseconds: {HOUR_US}"
    return f"max_batch_size: {batch}\nsequence_batching {{ {idle} {strategy} {CONTROLS} }}\n"


# Strategies of two slots, with the batch size.
OF_TWO = {
    "two_candidates": ("oldest { max_candidate_sequences: 2 }", 4),
    "candidates_not_said": ("oldest { }", 2),
    "rows": ("direct { }", 2),
    "two_candidates_alone": ("oldest { max_candidate_sequences: 2 }", 0),
}
PREFERRED = {
    "preferred": f"oldest {{ max_candidate_sequences: 8 preferred_batch_size: [ 3 ] "
    f"max_queue_delay_microseconds: {HOUR_US} }}",
    "delayed": "oldest { max_candidate_sequences: 8 preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 50000 }",
    "many": "oldest { max_candidate_sequences: 8 preserve_ordering: true }",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    repository: Path = tmp_path_factory.mktemp("models")
    for name, (strategy, batch) in OF_TWO.items():
        add_python_model(repository, name, COUNTED, signature=PORTS, config=scheduling(strategy, batch))
    for name, strategy in PREFERRED.items():
        add_python_model(repository, name, COUNTED, signature=PORTS, config=scheduling(strategy))
    return serve_module(repository)


@pytest.mark.parametrize("model", OF_TWO)
def test_a_sequence_waits_until_one_of_the_candidates_ends(server: ServerProcess, model: str) -> None:
    number = [0] if OF_TWO[model][1] == 0 else [[0]]
    one = {"X": np.array(number, np.int32)}
    with Caller(server, "http") as caller, Caller(server, "http") as third, ThreadPoolExecutor(1) as pool:
        caller.step(model, 1, one, start=True)
        caller.step(model, 2, one, start=True)
        waiting = pool.submit(third.step, model, 3, one, start=True, end=True)
        until(lambda: metric(server, "nv_inference_pending_request_count", model=model) == 1)
        caller.step(model, 1, {"X": one["X"] + 1})
        assert not waiting.done()
        caller.step(model, 2, {"X": one["X"] + 1}, end=True)
        assert waiting.result()["ROWS"]


# Ends a request once the test says so.
HELD = """
class TritonPythonModel:
    def execute(self, requests):
        note("begun")
        await_note("go")
        return [answer(Y=given(request)) for request in requests]
"""


@pytest.mark.parametrize("strategy", ["oldest { max_candidate_sequences: 4 }", "direct { }"])
def test_what_follows_a_cancelled_request_of_a_sequence_is_cancelled(
    repository: Path, serve: Serve, tmp_path: Path, strategy: str
) -> None:
    notes = Notes(tmp_path / "notes")
    idle = f"max_sequence_idle_microseconds: {HOUR_US}"
    config = f"max_batch_size: 4\nsequence_batching {{ {idle} {strategy} }}\n"
    add_python_model(repository, "held", HELD, signature="X: INT32[1] -> Y: INT32[1]", config=config)
    server = serve(repository, environment=notes.environment)
    answers: Queue[tuple[int, str]] = Queue()

    def send(client: Any, number: int, **flags: bool) -> Any:
        def finish(result: Any, error: Any) -> None:
            answers.put((number, error.status() if result is None else ""))

        tensor = grpc_client.InferInput("X", [1, 1], "INT32")
        tensor.set_data_from_numpy(np.array([[number]], np.int32))
        return client.async_infer("held", [tensor], finish, sequence_id=7, **flags)

    with grpc_client.InferenceServerClient(server.grpc) as client:
        send(client, 1, sequence_start=True)
        notes.read("begun")
        pending = {"model": "held"}
        cancelled = send(client, 2)
        until(lambda: metric(server, "nv_inference_pending_request_count", **pending) == 1)
        send(client, 3)
        until(lambda: metric(server, "nv_inference_pending_request_count", **pending) == 2)
        cancelled.cancel()
        outcomes = dict(answers.get(timeout=20) for _ in range(2))
        assert outcomes == {2: "StatusCode.CANCELLED", 3: "StatusCode.CANCELLED"}
        notes.write("go")
        # What ran already is answered, and the sequence is over.
        assert answers.get(timeout=20) == (1, "")
        send(client, 4)
        assert answers.get(timeout=20) == (4, "StatusCode.INVALID_ARGUMENT")
        until(lambda: metric(server, "nv_inference_request_failure", reason="CANCELED", **pending) == 2)


def test_candidates_wait_for_a_batch_of_a_preferred_size(server: ServerProcess) -> None:
    with ExitStack() as stack, ThreadPoolExecutor(3) as pool:
        callers = [stack.enter_context(Caller(server, "grpc")) for _ in range(3)]
        for number, flags in enumerate(({"start": True}, {}, {"end": True})):
            asked = [
                pool.submit(caller.step, "preferred", 1 + at, {"X": [[number]]}, **flags)
                for at, caller in enumerate(callers)
            ]
            assert [one.result() for one in asked] == [{"ROWS": [[3]]}] * 3


def test_a_lone_candidate_runs_after_the_delay(server: ServerProcess) -> None:
    with Caller(server, "grpc") as caller:
        assert caller.step("delayed", 1, {"X": [[0]]}, start=True) == {"ROWS": [[1]]}
        assert caller.step("delayed", 1, {"X": [[1]]}, end=True) == {"ROWS": [[1]]}


def test_each_sequence_keeps_its_order_however_many_are_sent_ahead(server: ServerProcess) -> None:
    count, sequences = 40, range(1, 13)
    with SequenceStream(server) as stream:
        for number in range(count):
            for sequence in sequences:
                x = np.array([[number]], np.int32)
                stream.send("many", "X", x, sequence, start=number == 0, end=number == count - 1)
        # The model fails where a request is not the next of its sequence.
        sizes = [int(one.flat[0]) for one in stream.receive_all(count * len(sequences))]
    assert set(sizes) <= {1, 2, 3, 4}
