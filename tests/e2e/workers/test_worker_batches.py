"""Requests that wait together run together, and each gets its own rows back."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.endpoints import ENDPOINTS, Endpoint, Reply
from support.notes import Notes
from support.python_models import add_python_model
from support.server import ServerProcess
from support.waiting import until

Start = Callable[..., ServerProcess]
AskLater = Callable[..., Future[Reply]]

# SIZE tells how many requests an execution had.
SIZES = """
class TritonPythonModel:
    def execute(self, requests):
        size = np.full((1,), len(requests), np.int32)
        return [answer(Y=given(r) * 2, SIZE=np.broadcast_to(size, (len(given(r)), 1))) for r in requests]
"""
SIZED = "X: INT32[-1] -> Y: INT32[-1], SIZE: INT32[1]"

# As above, but an execution with a negative input waits for the test.
HELD = """
class TritonPythonModel:
    def execute(self, requests):
        first = int(given(requests[0])[0, 0])
        if first < 0:
            note(f"begun{first}")
            await_note(f"go{first}")
        return [answer(Y=given(r) * 2, SIZE=np.full((len(given(r)), 1), len(requests), np.int32)) for r in requests]
"""

WAITS_FOR_FOUR = "max_batch_size: 4\ndynamic_batching { max_queue_delay_microseconds: 600000000 }"


@pytest.fixture(params=ENDPOINTS)
def connect(request: pytest.FixtureRequest) -> Callable[[ServerProcess], Endpoint]:
    return ENDPOINTS[request.param]


def test_a_full_batch_runs_at_once_and_is_split_by_rows(
    repository: Path, start: Start, ask_later: AskLater, connect: Callable[[ServerProcess], Endpoint]
) -> None:
    add_python_model(repository, "sizes", SIZES, signature=SIZED, config=WAITS_FOR_FOUR)
    server = start()
    with ExitStack() as stack:
        # One row, two rows, one row: four together, which is all that this batch waits for.
        rows = ([[1, 2]], [[3, 4], [5, 6]], [[7, 8]])
        endpoints = [stack.enter_context(connect(server)) for _ in rows]
        answers = [
            ask_later(endpoint, "sizes", {"X": one}).result for endpoint, one in zip(endpoints, rows, strict=True)
        ]
        for one, answer in zip(rows, answers, strict=True):
            assert answer()["Y"].tolist() == [[2 * number for number in row] for row in one]
            assert answer()["SIZE"].tolist() == [[3]] * len(one)
        (batch,) = endpoints[0].statistics("sizes")["batch_stats"]
        assert batch["batch_size"] == 4
        assert batch["compute_infer"]["count"] == 1


def test_what_waits_for_a_busy_instance_becomes_one_batch(
    repository: Path, start: Start, notes: Notes, ask_later: AskLater, connect: Callable[[ServerProcess], Endpoint]
) -> None:
    add_python_model(repository, "held", HELD, signature=SIZED, config="max_batch_size: 8\ndynamic_batching { }")
    server = start()
    with ExitStack() as stack:
        endpoints = [stack.enter_context(connect(server)) for _ in range(6)]
        for number in itertools.count(1):
            first = ask_later(endpoints[0], "held", {"X": [[-number]]})
            notes.read(f"begun{-number}")
            others = [ask_later(endpoint, "held", {"X": [[value]]}) for value, endpoint in enumerate(endpoints[1:])]
            notes.write(f"go{-number}")
            assert first.result()["SIZE"].tolist() == [[1]]
            sizes = [other.result()["SIZE"][0, 0] for other in others]
            assert [int(other.result()["Y"][0, 0]) for other in others] == [2 * value for value in range(5)]
            # They may arrive late, on a machine that has other things to do: then again.
            if max(sizes) > 1:
                break
        statistics = endpoints[0].statistics("held")
        assert statistics["inference_count"] == 6 * number
        assert statistics["execution_count"] < 6 * number


def test_without_dynamic_batching_each_request_runs_by_itself(
    repository: Path, start: Start, notes: Notes, ask_later: AskLater
) -> None:
    add_python_model(repository, "held", HELD, signature=SIZED, config="max_batch_size: 8")
    server = start()
    with ExitStack() as stack:
        endpoints = [stack.enter_context(ENDPOINTS["grpc"](server)) for _ in range(6)]
        first = ask_later(endpoints[0], "held", {"X": [[-1]]})
        notes.read("begun-1")
        others = [ask_later(endpoint, "held", {"X": [[value]]}) for value, endpoint in enumerate(endpoints[1:])]
        notes.write("go-1")
        assert {int(one.result()["SIZE"][0, 0]) for one in (first, *others)} == {1}
        until(lambda: endpoints[0].statistics("held")["execution_count"] == 6)


def test_each_version_runs_its_own_file(repository: Path, start: Start) -> None:
    source = """
    class TritonPythonModel:
        def initialize(self, args):
            self.version = int(args["model_version"])

        def execute(self, requests):
            return [answer(Y=given(request) * self.version) for request in requests]
    """
    add_python_model(
        repository, "scaled", source, versions=(1, 2, 3), config="version_policy { specific { versions: [1, 3] } }"
    )
    server = start()
    with ENDPOINTS["http"](server) as http, ENDPOINTS["grpc"](server) as grpc:
        for endpoint in (http, grpc):
            assert endpoint.ask("scaled", {"X": [5]}, version="1")["Y"].tolist() == [5]
            assert endpoint.ask("scaled", {"X": [5]}, version="3")["Y"].tolist() == [15]
            assert endpoint.ask("scaled", {"X": [5]}).version == "3"
            assert not endpoint.is_ready("scaled", "2")
