"""Decoupled models that answer a request after `execute` has returned: their sequences and batches go on meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.python_models import DECOUPLED, add_python_model
from support.sequences import Refused, SequenceStream
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

# A recogniser: what it makes of a request it says when it has heard the next one, or the last one. One whose X is
# negative is never answered.
RECOGNISER = """
class TritonPythonModel:
    def initialize(self, args):
        self.kept = {}
        self.forgotten = []

    def execute(self, requests):
        for request in requests:
            number, sender = int(given(request, "ID").flat[0]), request.get_response_sender()
            before = self.kept.pop(number, None)
            if before is not None:
                before[0].send(answer(Y=before[1]), flags=FINAL)
            if given(request).flat[0] < 0:
                self.forgotten.append(sender)
            elif given(request, "END").flat[0]:
                sender.send(answer(Y=given(request)), flags=FINAL)
            else:
                self.kept[number] = (sender, given(request))
"""
# The same without sequences: each request is answered by the next one.
RELAY = """
class TritonPythonModel:
    kept = None

    def execute(self, requests):
        for request in requests:
            if self.kept is not None:
                self.kept[0].send(answer(Y=self.kept[1]), flags=FINAL)
            self.kept = (request.get_response_sender(), given(request))
"""
CONTROLS = """
    control_input [
        { name: "END" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] },
        { name: "ID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }
    ]
"""
# Strategies with one slot each.
ONE_SLOT = {"direct": "direct { }", "oldest": "oldest { max_candidate_sequences: 1 }"}
HOUR_US = 3_600_000_000
PORTS = "X: INT32[1] -> Y: INT32[1]"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    for name, strategy in ONE_SLOT.items():
        for idle_us, kind in ((HOUR_US, ""), (1000, "_soon_idle")):
            sequences = f"sequence_batching {{ max_sequence_idle_microseconds: {idle_us} {strategy} {CONTROLS} }}"
            config = f"max_batch_size: 1\n{sequences}\n{DECOUPLED}"
            add_python_model(repository, name + kind, RECOGNISER, signature=PORTS, config=config)
    batching = "dynamic_batching { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 100 }"
    config = f"max_batch_size: 4\n{batching}\n{DECOUPLED}"
    add_python_model(repository, "batched", RELAY, signature=PORTS, config=config)
    return serve_module(repository)


def row(value: int) -> np.ndarray:
    return np.array([[value]], np.int32)


@pytest.mark.parametrize("model", ONE_SLOT)
def test_a_sequence_goes_on_while_its_last_request_is_still_answered(server: ServerProcess, model: str) -> None:
    with SequenceStream(server) as stream:
        for step in range(5):
            stream.send(model, "X", row(step), 7, start=step == 0, end=step == 4)
        answers = [int(answer.flat[0]) for answer in stream.receive_all(5)]
    assert sorted(answers) == list(range(5))


@pytest.mark.parametrize("model", ONE_SLOT)
def test_a_sequence_leaves_its_slot_while_its_request_is_still_answered(server: ServerProcess, model: str) -> None:
    with SequenceStream(server) as stream:
        stream.send(model, "X", row(-1), 8, start=True, end=True)
        stream.send(model, "X", row(2), 9, start=True, end=True)
        assert int(stream.receive().flat[0]) == 2


@pytest.mark.parametrize("model", ONE_SLOT)
def test_a_sequence_counts_as_idle_once_its_request_is_executed(server: ServerProcess, model: str) -> None:
    model += "_soon_idle"
    with SequenceStream(server) as stream:
        stream.send(model, "X", row(1), 8, start=True)
        stream.send(model, "X", row(2), 9, start=True, end=True)
        assert int(stream.receive().flat[0]) == 2
        stream.send(model, "X", row(1), 8)
        with pytest.raises(Refused, match="must specify the START flag"):
            stream.receive()


def test_the_next_batch_runs_while_the_last_one_is_still_answered(server: ServerProcess) -> None:
    with SequenceStream(server) as stream:
        for value in range(1, 4):
            stream.send("batched", "X", row(value), 0)
        assert sorted(int(answer.flat[0]) for answer in stream.receive_all(2)) == [1, 2]
