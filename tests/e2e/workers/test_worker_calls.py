"""Calls between models when the process that called is no more."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.endpoints import ENDPOINTS, Refusal, Reply
from support.notes import Notes
from support.processes import is_gone
from support.python_models import add_python_model
from support.server import ServerProcess
from support.waiting import until

Start = Callable[..., ServerProcess]
AskLater = Callable[..., Future[Reply]]

CALLER = """
class TritonPythonModel:
    def execute(self, requests):
        note(f"caller {int(given(requests[0])[0])}", os.getpid())
        call = pb_utils.InferenceRequest(
            model_name="callee", requested_output_names=["Y"], inputs=[pb_utils.Tensor("X", given(requests[0]).copy())]
        )
        response = call.exec()
        if response.has_error():
            raise pb_utils.TritonModelException(response.error().message())
        return [answer(Y=response.output_tensors()[0].as_numpy())]
"""

CALLEE = """
class TritonPythonModel:
    def execute(self, requests):
        number = int(given(requests[0])[0])
        note(f"callee {number}")
        await_note(f"go {number}")
        return [answer(Y=given(request) * 2) for request in requests]
"""


@pytest.mark.parametrize("protocol", ENDPOINTS)
def test_the_answer_to_a_dead_process_skips_its_successor(
    repository: Path, start: Start, notes: Notes, ask_later: AskLater, protocol: str
) -> None:
    add_python_model(repository, "caller", CALLER)
    add_python_model(repository, "callee", CALLEE)
    server = start()
    with ExitStack() as stack:
        one, two, three, four = (stack.enter_context(ENDPOINTS[protocol](server)) for _ in range(4))
        first = ask_later(one, "caller", {"X": [1]})
        notes.read("callee 1")  # it executes the call of the process that dies now
        victim = int(notes.read("caller 1"))
        os.kill(victim, signal.SIGKILL)
        until(lambda: is_gone(victim))
        with pytest.raises(Refusal, match="signal 9"):
            first.result()
        # The first call of the next process: a count of calls that begins at one would give the same number twice.
        second = ask_later(two, "caller", {"X": [2]})
        assert int(notes.read("caller 2")) != victim
        # The same for a call that still waits when its process dies.
        victim = int(notes.read("caller 2"))
        os.kill(victim, signal.SIGKILL)
        until(lambda: is_gone(victim))
        with pytest.raises(Refusal, match="signal 9"):
            second.result()
        third = ask_later(three, "caller", {"X": [3]})
        notes.read("caller 3")
        for number in (1, 2, 3, 4):
            notes.write(f"go {number}")
        assert third.result()["Y"].tolist() == [6]
        assert four.ask("caller", {"X": [4]})["Y"].tolist() == [8]
