"""Levers hold sequences back; those that begin twice are logged, and those that cannot be batched are errors."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from support.models import add_model, counts_up, remembers_rows
from support.python_models import add_python_model
from support.sequence_callers import Caller
from support.sequences import Refused, SequenceStream
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

BATCHES = """
class TritonPythonModel:
    def execute(self, requests):
        rows = np.array([[len(requests)]], np.int32)
        return [answer(ROWS=rows) for _ in requests]
"""
NUMBER = "X: INT32[1] -> ROWS: INT32[1]"
STATE = 'state [ { input_name: "OLD" output_name: "NEW" data_type: TYPE_INT32 dims: [ 1 ] } ]'
GROWS = (
    'state [ { input_name: "OLD" output_name: "NEW" data_type: TYPE_FP32 dims: [ -1 ]'
    ' initial_state { name: "empty" data_type: TYPE_FP32 dims: [ 0 ] zero_data: true } } ]'
)


def config(sequences: str, max_batch_size: int, more: str = "") -> str:
    scheduling = f"sequence_batching {{ max_sequence_idle_microseconds: 600000000 {sequences} }}"
    return f"max_batch_size: {max_batch_size}\n{scheduling}\n{more}"


def in_threads(server: ServerProcess, steps: list[Callable[[Caller], dict[str, list[list[int]]]]]) -> list[int]:
    """What each of the steps is answered first, all of them under way at once."""

    def ask(step: Callable[[Caller], dict[str, list[list[int]]]]) -> int:
        with Caller(server, "http") as caller:
            return step(caller)["ROWS"][0][0]

    with ThreadPoolExecutor(len(steps)) as pool:
        return list(pool.map(ask, steps))


@pytest.mark.parametrize("strategy", ["", "oldest { max_candidate_sequences: 4 }"])
def test_the_scheduler_is_delayed_until_enough_requests_wait(repository: Path, serve: Serve, strategy: str) -> None:
    add_python_model(repository, "held", BATCHES, signature=NUMBER, config=config(strategy, 3))
    server = serve(repository, environment={"TRITONSERVER_DELAY_SCHEDULER": "3"})
    starts = [
        lambda caller, number=number: caller.step("held", number, {"X": [[1]]}, start=True) for number in (1, 2, 3)
    ]
    assert in_threads(server, starts) == [3, 3, 3]


def test_sequences_without_a_slot_count_for_the_backlogs_lever(repository: Path, serve: Serve) -> None:
    add_python_model(repository, "held", BATCHES, signature=NUMBER, config=config("", 2))
    levers = {"TRITONSERVER_DELAY_SCHEDULER": "2", "TRITONSERVER_BACKLOG_DELAY_SCHEDULER": "1"}
    server = serve(repository, environment=levers)
    whole = [
        lambda caller, number=number: caller.step("held", number, {"X": [[1]]}, start=True, end=True)
        for number in (1, 2, 3)
    ]
    assert sorted(in_threads(server, whole)) == [1, 2, 2]


def test_the_log_tells_of_a_sequence_that_begins_before_its_end(repository: Path, serve: Serve) -> None:
    add_python_model(repository, "twice", BATCHES, signature=NUMBER, config=config("", 2))
    server = serve(repository)
    with Caller(server, "grpc") as caller:
        for sequence in (7, "seven"):
            for start in (True, False, True):
                caller.step("twice", sequence, {"X": [[1]]}, start=start, end=False)
    for name in ("7", "seven"):
        server.wait_for_output(
            f"sequence {name} for model 'twice' has a conflict. The previous sequence did not end before this sequence "
            "start. Previous sequence will be terminated early."
        )


def test_states_of_different_shapes_in_one_batch_are_an_error(repository: Path, serve: Serve) -> None:
    ports = """backend: "onnxruntime"
        input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
        output [ { name: "ALL" data_type: TYPE_FP32 dims: [ -1 ] } ]
        instance_group [ { kind: KIND_CPU count: 1 } ]
        """
    add_model(repository, "grows", remembers_rows(), config=ports + config(GROWS, 2))
    # All three wait before the first runs, alone for its shape; the other two would run together then.
    server = serve(repository, environment={"TRITONSERVER_DELAY_SCHEDULER": "3"})
    answers = []
    with SequenceStream(server) as stream:
        stream.send("grows", "X", np.array([[1, 2]], np.float32), 1, start=True)
        stream.send("grows", "X", np.array([[3]], np.float32), 1)
        stream.send("grows", "X", np.array([[4]], np.float32), 2, start=True)
        for _ in range(3):
            try:
                answers.append(str(stream.receive().tolist()))
            except Refused as refused:
                answers.append(str(refused))
        assert sorted(answers)[0] == "[[1.0, 2.0]]"
        for text in sorted(answers)[1:]:
            assert "state 'OLD' has shape [1,2] in one sequence of the batch and [1,0] in another" in text
        stream.send("grows", "X", np.array([[5]], np.float32), 1)
        assert stream.receive().tolist() == [[1.0, 2.0, 5.0]]


def test_ragged_inputs_and_sequences_are_refused_together(repository: Path, serve: Serve) -> None:
    ports = """backend: "onnxruntime"
        input [ { name: "X" data_type: TYPE_INT32 dims: [ 1 ] allow_ragged_batch: true } ]
        output [ { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] } ]
        """
    add_model(repository, "ragged", counts_up(), config=ports + config(STATE, 2))
    with ServerProcess(repository) as server:
        server.wait_for_output(
            "model 'ragged' has sequence_batching and input.allow_ragged_batch of 'X', which are not offered together"
        )


SHAPES = """
class TritonPythonModel:
    def execute(self, requests):
        sizes = sorted(given(request).shape[1] for request in requests)
        return [answer(SIZES=np.array([sizes], np.int32)) for _ in requests]
"""


@pytest.mark.parametrize("strategy", ["", "oldest { max_candidate_sequences: 4 }"])
def test_sequences_of_different_shapes_share_a_batch_of_a_python_model(
    repository: Path, serve: Serve, strategy: str
) -> None:
    folder = add_python_model(
        repository, "ragged", SHAPES, signature="X: INT32[-1] -> SIZES: INT32[-1]", config=config(strategy, 2)
    )
    file = folder / "config.pbtxt"
    file.write_text(file.read_text().replace("input [ {", "input [ { allow_ragged_batch: true", 1))
    assert "allow_ragged_batch" in file.read_text()
    server = serve(repository, environment={"TRITONSERVER_DELAY_SCHEDULER": "2"})

    def ask(number: int) -> list[int]:
        with Caller(server, "http") as caller:
            return caller.step("ragged", number, {"X": [list(range(number + 1))]}, start=True)["SIZES"][0]

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(ask, (1, 2))) == [[2, 3], [2, 3]]


@pytest.mark.parametrize("strategy", ["", "oldest { max_candidate_sequences: 4 }"])
def test_a_warm_up_of_several_requests_fills_rows_and_leaves_no_state(
    repository: Path, serve: Serve, strategy: str
) -> None:
    ports = """backend: "onnxruntime"
        input [ { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } ]
        output [ { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] } ]
        """
    warmup = """model_warmup [ { name: "four" batch_size: 4 count: 2
        inputs { key: "X" value { data_type: TYPE_INT32 dims: [ 1 ] random_data: true } } } ]"""
    add_model(repository, "warm", counts_up(), config=ports + config(STATE + strategy, 4, warmup))
    server = serve(repository)
    with Caller(server, "http") as caller:
        for sequence in range(1, 6):
            assert caller.step("warm", sequence, {"X": [[sequence]]}, start=True, end=sequence > 3) == {
                "Y": [[sequence]]
            }
        assert caller.step("warm", 1, {"X": [[10]]}) == {"Y": [[11]]}


def test_sequences_keep_their_states_while_instances_take_turns(repository: Path, serve: Serve) -> None:
    ports = """backend: "onnxruntime"
        input [ { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } ]
        output [ { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] } ]
        """
    group = """instance_group [ { kind: KIND_CPU count: 3
        rate_limiter { resources [ { name: "turn" count: 1 } ] } } ]"""
    add_model(repository, "one", counts_up(), config=ports + config(STATE, 2, group))
    strategy = "oldest { max_candidate_sequences: 2 }"
    add_model(repository, "two", counts_up(), config=ports + config(STATE + strategy, 2, group))
    server = serve(repository, "--rate-limit=execution_count", "--rate-limit-resource=turn:1")

    def play(sequence: int) -> None:
        with Caller(server, "http") as caller:
            model = ("one", "two")[sequence % 2]
            total = 0
            for step in range(40):
                total += step
                answer = caller.step(model, sequence, {"X": [[step]]}, start=step == 0, end=step == 39)
                assert answer == {"Y": [[total]]}

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(play, range(1, 11)))
