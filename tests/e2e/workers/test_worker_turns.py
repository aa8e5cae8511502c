"""Which of a model's processes a request goes to: one that has nothing to do, whatever the others did before."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.endpoints import ENDPOINTS, Reply
from support.notes import Notes
from support.processes import under_way
from support.python_models import add_python_model, instances
from support.server import ServerProcess
from support.waiting import until

MODEL = """
class TritonPythonModel:
    def execute(self, requests):
        number = int(given(requests[0])[0])
        note(f"begun {number}", os.getpid())
        await_note(f"go {number}")
        return [answer(Y=given(request)) for request in requests]
"""


@pytest.mark.parametrize("protocol", ENDPOINTS)
def test_nobody_waits_behind_others_while_a_process_has_nothing_to_do(
    repository: Path,
    start: Callable[..., ServerProcess],
    notes: Notes,
    ask_later: Callable[..., Future[Reply]],
    protocol: str,
) -> None:
    add_python_model(repository, "pair", MODEL, config=instances(2))
    server = start()
    with ExitStack() as stack:
        one, two, three, four = (stack.enter_context(ENDPOINTS[protocol](server)) for _ in range(4))
        first = ask_later(one, "pair", {"X": [1]})
        process = {1: notes.read("begun 1")}
        second = ask_later(two, "pair", {"X": [2]})
        process[2] = notes.read("begun 2")
        assert process[1] != process[2]
        # It waits with the first process, and goes on there when the request before it is over.
        third = ask_later(three, "pair", {"X": [3]})
        until(lambda: under_way(server, "pair") == 3)
        notes.write("go 1")
        assert notes.read("begun 3") == process[1]
        notes.write("go 2")
        assert [first.result()["Y"].tolist(), second.result()["Y"].tolist()] == [[1], [2]]
        fourth = ask_later(four, "pair", {"X": [4]})
        assert notes.read("begun 4") == process[2]
        for number in (3, 4):
            notes.write(f"go {number}")
        assert [third.result()["Y"].tolist(), fourth.result()["Y"].tolist()] == [[3], [4]]
