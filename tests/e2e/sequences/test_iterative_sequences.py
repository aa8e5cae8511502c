"""Requests that a Python model takes again and again: rounds, what runs between them, and how such a sequence ends."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
from support.notes import Notes
from support.processes import metric
from support.python_models import DECOUPLED, add_python_model
from support.sequence_callers import Caller
from support.sequences import SequenceStream
from support.server import ServerProcess
from support.waiting import until

Serve = Callable[..., ServerProcess]

NO_START = "must specify the START flag on the first request of the sequence"

# Answers after as many rounds as X says, or for 0 once another request has come, with what it saw in each round: START,
# END, flags, and whether the id is the same everywhere and not zero.
ROUNDS = """
class TritonPythonModel:
    def initialize(self, args):
        self.name = args["model_name"]
        self.seen = {}
        self.since = {}
        self.come = 0

    def execute(self, requests):
        return [self.one(request) for request in requests]

    def one(self, request):
        note("round of " + self.name)
        number, wanted = request.correlation_id(), int(given(request).flat[0])
        start, end, control = (int(given(request, name).flat[0]) for name in ("START", "END", "ID"))
        if number not in self.seen:
            self.come += 1
            self.seen[number], self.since[number] = [], self.come
        seen = self.seen[number]
        seen.append([start, end, request.flags(), int(number & 0xffffffff == control > 0)])
        if self.come > self.since[number] if wanted == 0 else len(seen) == wanted:
            return answer(SEEN=np.array([self.seen.pop(number)], np.int32))
        request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
        return None
"""

# One response in each round, X - 1 to 0.
COUNTS_DOWN = """
class TritonPythonModel:
    def initialize(self, args):
        self.left = {}

    def execute(self, requests):
        for request in requests:
            number = request.correlation_id()
            left = self.left.pop(number, int(given(request).flat[0])) - 1
            sender = request.get_response_sender()
            sender.send(answer(Y=np.array([[left]], np.int32)), 0 if left else FINAL)
            if left:
                self.left[number] = left
                request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
"""

NUMBER = "X: INT32[1] -> Y: INT32[1]"
SEEN = "X: INT32[1] -> SEEN: INT32[-1, 4]"
CONTROLS = """
    control_input [
        { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
        { name: "END" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] },
        { name: "ID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT32 } ] }
    ]
"""
STRATEGIES = {"oldest": "oldest { max_candidate_sequences: 2 }", "direct": "direct { }"}


def scheduling(more: str, *, batch: int = 2, idle_us: int = 600_000_000, iterative: str = "true") -> str:
    idle = f"max_sequence_idle_microseconds: {idle_us}"
    return f"max_batch_size: {batch}\nsequence_batching {{ {idle} iterative_sequence: {iterative} {more} }}\n"


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Notes:
    return Notes(tmp_path_factory.mktemp("notes"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, notes: Notes, serve_module: Serve) -> ServerProcess:
    repository: Path = tmp_path_factory.mktemp("models")
    for name, strategy in STRATEGIES.items():
        config = scheduling(strategy + CONTROLS)
        add_python_model(repository, name, ROUNDS, signature=SEEN, config=config)
        config = scheduling(strategy) + DECOUPLED
        add_python_model(repository, f"down_{name}", COUNTS_DOWN, signature=NUMBER, config=config)
    single = scheduling("oldest { max_candidate_sequences: 1 }" + CONTROLS, batch=1, idle_us=1)
    add_python_model(repository, "single", ROUNDS, signature=SEEN, config=single)
    once = scheduling("direct { }" + CONTROLS, iterative="false")
    add_python_model(repository, "once", ROUNDS, signature=SEEN, config=once)
    return serve_module(repository, environment=notes.environment)


FIRST, LATER = [1, 0, 1, 1], [0, 0, 0, 1]


@pytest.mark.parametrize("model", STRATEGIES)
def test_only_the_first_round_starts_and_none_ends_the_sequence(server: ServerProcess, model: str) -> None:
    with Caller(server, "http") as caller:
        assert caller.step(model, 0, {"X": [[4]]}) == {"SEEN": [[FIRST, LATER, LATER, LATER]]}
        assert caller.step(model, 0, {"X": [[1]]}) == {"SEEN": [[FIRST]]}
        # With an id of the caller's.
        assert caller.step(model, 77, {"X": [[2]]}, start=True) == {"SEEN": [[FIRST, LATER]]}


@pytest.mark.parametrize("model", STRATEGIES)
def test_a_sequence_with_an_id_of_its_own_is_over_with_its_answer(server: ServerProcess, model: str) -> None:
    with Caller(server, "grpc") as caller:
        assert NO_START in caller.refusal(model, 5, {"X": [[1]]})
        # More sequences than slots, each without an end.
        for number in (5, 6, 7, 8):
            # A sequence without a slot is refused after five seconds.
            caller.step(model, number, {"X": [[2]]}, start=True, timeout_us=5_000_000)
            assert NO_START in caller.refusal(model, number, {"X": [[1]]})


@pytest.mark.parametrize("model", STRATEGIES)
def test_others_run_between_the_rounds_of_a_request(server: ServerProcess, model: str) -> None:
    with Caller(server, "http") as first, Caller(server, "http") as second, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(first.step, model, 0, {"X": [[0]]})
        until(lambda: len(second.step(model, 0, {"X": [[3]]})["SEEN"][0]) == 3 and waiting.done())
        (rounds,) = waiting.result()["SEEN"]
        assert rounds == [FIRST, *[LATER] * (len(rounds) - 1)]


@pytest.mark.parametrize("model", STRATEGIES)
def test_a_decoupled_model_may_answer_in_each_round(server: ServerProcess, model: str) -> None:
    with SequenceStream(server) as stream:
        for start in (5, 3):
            stream.send(f"down_{model}", "X", np.array([[start]], np.int32), 0)
            assert [int(one.flat[0]) for one in stream.receive_all(start)] == list(range(start))[::-1]


def test_a_request_whose_caller_leaves_has_no_further_round(server: ServerProcess, notes: Notes) -> None:
    tensor = grpc_client.InferInput("X", [1, 1], "INT32")
    tensor.set_data_from_numpy(np.zeros((1, 1), np.int32))
    with grpc_client.InferenceServerClient(server.grpc) as client, Caller(server, "http") as caller:
        call = client.async_infer("single", [tensor], callback=lambda result, error: None)
        notes.read("round of single")
        call.cancel()
        # There is one slot. That nobody may be silent for longer than a microsecond ends no sequence between rounds.
        assert caller.step("single", 0, {"X": [[3]]}) == {"SEEN": [[FIRST, LATER, LATER]]}
        cancelled = {"model": "single", "reason": "CANCELED"}
        until(lambda: metric(server, "nv_inference_request_failure", **cancelled) == 1)


def test_no_other_model_may_have_a_request_again(server: ServerProcess) -> None:
    with Caller(server, "grpc") as caller:
        refusal = caller.refusal("once", 9, {"X": [[2]]}, start=True)
        assert "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE" in refusal
        assert "iterative_sequence: true" in refusal
        assert caller.step("once", 8, {"X": [[1]]}, start=True, end=True) == {"SEEN": [[[1, 1, 3, 1]]]}
