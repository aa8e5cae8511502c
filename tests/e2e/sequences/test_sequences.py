"""Requests of a sequence meet one instance, in one row, one after the other, and their state stays theirs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from support.models import add_model, counts_up, remembers_all
from support.python_models import add_python_model
from support.sequence_callers import Caller
from support.sequences import SequenceStream
from support.server import ServerProcess

Call = Callable[[], Caller]
Serve = Callable[..., ServerProcess]

both_endpoints = pytest.mark.parametrize("call", ["http", "grpc"], indirect=True)

CONTROLS = """
    control_input [
        { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
        { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY bool_false_true: [ false, true ] } ] },
        { name: "ID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }
    ]
"""


def sequences(more: str = CONTROLS, max_batch_size: int = 4) -> str:
    # No sequence is forgotten while a test lasts.
    return f"max_batch_size: {max_batch_size}\nsequence_batching {{ max_sequence_idle_microseconds: 600000000 {more} }}"


# SEEN tells the ids of all rows of the batch, and zero for one without a request.
ROWS = """
class TritonPythonModel:
    def execute(self, requests):
        ids = [int(given(r, "ID").flat[0]) if given(r, "READY").flat[0] else 0 for r in requests]
        shape = {given(r).shape for r in requests}
        assert len(shape) == 1, shape
        return [answer(SEEN=np.array([ids], np.int32)) for _ in requests]
"""

# Adds X to a number that the server keeps, and tells it.
SUMS = """
class TritonPythonModel:
    def execute(self, requests):
        totals = [given(r) + given(r, "OLD") for r in requests]
        return [answer(Y=total * 10, NEW=total) for total in totals]
"""
STATE = 'state [ { input_name: "OLD" output_name: "NEW" data_type: TYPE_INT32 dims: [ 1 ] } ]'

# Ends its process when a request says so.
DIES = """
class TritonPythonModel:
    def execute(self, requests):
        if min(int(given(r).flat[0]) for r in requests) < 0:
            os._exit(3)
        return [answer(Y=given(r)) for r in requests]
"""

# Answers a request after as many rounds as it asks for, and tells how many there were.
ROUNDS = """
class TritonPythonModel:
    def initialize(self, args):
        self.rounds = {}

    def execute(self, requests):
        answers = []
        for request in requests:
            sequence = int(given(request, "ID").flat[0])
            self.rounds[sequence] = 1 if given(request, "START").flat[0] else self.rounds[sequence] + 1
            if self.rounds[sequence] < given(request).flat[0]:
                request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
                answers.append(None)
            else:
                answers.append(answer(Y=np.array([[self.rounds.pop(sequence)]], np.int32)))
        return answers
"""

NUMBER = "X: INT32[1] -> Y: INT32[1]"
NO_START = "must specify the START flag on the first request of the sequence"


@both_endpoints
def test_a_sequence_keeps_its_row_without_requests(repository: Path, call: Call) -> None:
    add_python_model(repository, "rows", ROWS, signature="X: INT32[1] -> SEEN: INT32[-1]", config=sequences())
    one = call()
    one.step("rows", 11, {"X": [[1]]}, start=True)
    one.step("rows", 12, {"X": [[1]]}, start=True)
    assert one.step("rows", 13, {"X": [[1]]}, start=True)["SEEN"] == [[0, 0, 13]]
    assert one.step("rows", 12, {"X": [[1]]}, end=True)["SEEN"] == [[0, 12]]
    assert one.step("rows", 14, {"X": [[1]]}, start=True)["SEEN"] == [[0, 14]]
    assert one.step("rows", 11, {"X": [[1]]})["SEEN"] == [[11]]
    assert NO_START in one.refusal("rows", 12, {"X": [[1]]})


@both_endpoints
@pytest.mark.parametrize("strategy", ["", "oldest { max_candidate_sequences: 3 }"])
def test_what_the_server_keeps_for_a_python_model_is_each_sequences_own(
    repository: Path, call: Call, strategy: str
) -> None:
    add_python_model(repository, "sums", SUMS, signature=NUMBER, config=sequences(STATE + strategy))
    one = call()
    for sequence in (1, 2):
        assert one.step("sums", sequence, {"X": [[sequence]]}, start=True) == {"Y": [[10 * sequence]]}
    for sequence in (1, 2):
        assert one.step("sums", sequence, {"X": [[5]]}) == {"Y": [[10 * sequence + 50]]}
    assert one.step("sums", 1, {"X": [[7]]}, start=True) == {"Y": [[70]]}
    assert one.step("sums", 2, {"X": [[1]]}, end=True) == {"Y": [[80]]}
    assert one.step("sums", 2, {"X": [[3]]}, start=True) == {"Y": [[30]]}


def test_a_state_of_an_onnx_model_may_grow(repository: Path, call: Call) -> None:
    state = (
        'state [ { input_name: "OLD" output_name: "NEW" data_type: TYPE_FP32 dims: [ -1 ]'
        ' initial_state { name: "empty" data_type: TYPE_FP32 dims: [ 0 ] zero_data: true } } ]'
    )
    ports = """backend: "onnxruntime"
        input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
        output [ { name: "ALL" data_type: TYPE_FP32 dims: [ -1 ] } ]
        instance_group [ { kind: KIND_CPU count: 1 } ]
        """
    add_model(repository, "grows", remembers_all(), config=ports + sequences(state, max_batch_size=0))
    one = call()
    values_seen: list[float] = []
    for number in range(5):
        values = np.arange(number, dtype=np.float32) if number else np.array([9], np.float32)
        values_seen += values.tolist()
        assert one.step("grows", "text", {"X": values}, start=number == 0) == {"ALL": values_seen}


def test_only_sequences_without_a_slot_time_out(repository: Path, call: Call) -> None:
    add_python_model(repository, "one", DIES, signature=NUMBER, config=sequences("", max_batch_size=1))
    first, second = call(), call()
    assert first.step("one", 1, {"X": [[1]]}, start=True, timeout_us=1) == {"Y": [[1]]}
    refusal = second.refusal("one", 2, {"X": [[2]]}, start=True, timeout_us=50_000)
    assert refusal == "timeout of the corresponding sequence has been expired"
    assert first.step("one", 1, {"X": [[3]]}, timeout_us=1) == {"Y": [[3]]}


def test_the_backlog_is_served_in_order_when_slots_are_free(repository: Path, call: Call) -> None:
    add_python_model(repository, "one", DIES, signature=NUMBER, config=sequences("", max_batch_size=1))
    first = call()
    first.step("one", 1, {"X": [[1]]}, start=True)
    with ThreadPoolExecutor(4) as pool:
        callers = [call() for _ in range(4)]
        begun = [
            pool.submit(caller.step, "one", 2 + number, {"X": [[number]]}, start=True, end=True)
            for number, caller in enumerate(callers)
        ]
        assert first.step("one", 1, {"X": [[1]]}, end=True) == {"Y": [[1]]}
        assert [one.result() for one in begun] == [{"Y": [[number]]} for number in range(4)]


def test_sequences_of_a_process_that_died_are_over_and_begin_again(repository: Path, call: Call) -> None:
    add_python_model(repository, "dies", DIES, signature=NUMBER, config=sequences("", max_batch_size=2))
    one = call()
    one.step("dies", 1, {"X": [[1]]}, start=True)
    one.step("dies", 2, {"X": [[1]]}, start=True)
    assert "left with exit code 3" in one.refusal("dies", 1, {"X": [[-1]]})
    assert NO_START in one.refusal("dies", 2, {"X": [[1]]})
    assert one.step("dies", 2, {"X": [[4]]}, start=True, end=True) == {"Y": [[4]]}


@both_endpoints
def test_a_request_comes_again_until_the_model_is_done_with_it(repository: Path, call: Call) -> None:
    more = CONTROLS + "oldest { max_candidate_sequences: 3 } iterative_sequence: true"
    add_python_model(repository, "rounds", ROUNDS, signature=NUMBER, config=sequences(more))
    callers = [call() for _ in range(6)]
    with ThreadPoolExecutor(len(callers)) as pool:
        pending = [pool.submit(one.step, "rounds", 0, {"X": [[5 + one_]]}) for one_, one in enumerate(callers)]
        assert [one.result() for one in pending] == [{"Y": [[5 + rounds]]} for rounds in range(len(callers))]


def test_ten_thousand_sequences_live_side_by_side(repository: Path, serve: Serve) -> None:
    count = 10_000
    state = (
        'state [ { input_name: "OLD" output_name: "NEW" data_type: TYPE_INT32 dims: [ 1 ]'
        ' initial_state { name: "zero" data_type: TYPE_INT32 dims: [ 1 ] zero_data: true } } ]'
    )
    ports = """backend: "onnxruntime"
        input [ { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } ]
        output [ { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] } ]
        instance_group [ { kind: KIND_CPU count: 1 } ]
        """
    more = f"oldest {{ max_candidate_sequences: {count} }} {state}"
    add_model(repository, "counts", counts_up(), config=ports + sequences(more, max_batch_size=64))
    with SequenceStream(serve(repository)) as stream:
        for round_, flags in enumerate(({"start": True}, {}, {"end": True}), start=1):
            for sequence in range(1, count + 1):
                stream.send("counts", "X", np.array([[sequence]], np.int32), sequence, **flags)
            answers = sorted(int(answer.flat[0]) for answer in stream.receive_all(count))
            assert answers == [round_ * sequence for sequence in range(1, count + 1)]
