"""Load tests of models that keep a state from one request of a sequence to the next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from alipes import ConfigError, TransportError
from alipes.loadtest import Closed, Measuring, ModelRequests, Open, Sequences, Window, run
from support.python_models import add_python_model
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

# Each sequence has to count from zero, in order; one that is cut short goes on with its end.
COUNTED = """
class TritonPythonModel:
    def initialize(self, args):
        self.next = {}

    def execute(self, requests):
        responses = []
        for request in requests:
            number, seen = int(given(request, "ID").flat[0]), int(given(request).flat[0])
            expected = 0 if given(request, "START").flat[0] else self.next.get(number)
            end = bool(given(request, "END").flat[0])
            if expected is None or (seen != expected and not end):
                error = pb_utils.TritonError(f"sequence {number} goes on with {seen}, not with {expected}")
                responses.append(pb_utils.InferenceResponse(error=error))
                continue
            self.next[number] = None if end else seen + 1
            responses.append(answer(Y=given(request)))
        return responses
"""
CONFIG = """
sequence_batching { direct { } max_sequence_idle_microseconds: 600000000 control_input [
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
    { name: "END" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] },
    { name: "ID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }
] }
"""
LENGTH = 5


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    repository: Path = tmp_path_factory.mktemp("models")
    config = f"max_batch_size: 4\n{CONFIG}"
    add_python_model(repository, "counted", COUNTED, signature="X: INT32[1] -> Y: INT32[1]", config=config)
    return serve_module(repository)


def sequences(number: int, *, stream: bool = False, first_id: int = 1) -> Sequences:
    steps = np.arange(LENGTH, dtype=np.int32).reshape(LENGTH, 1, 1)
    return Sequences(ModelRequests("counted", data={"X": steps}, stream=stream), LENGTH, number, first_id)


def measured(server: ServerProcess, wire: str, requests: Sequences, pace: Closed | Open) -> Window:
    address = f"{wire}://{getattr(server, wire)}"
    return run(requests, pace, address=address, measuring=Measuring(count=20 * LENGTH, threads=2)).levels[0].result


@pytest.mark.parametrize(("wire", "stream"), [("http", False), ("grpc", False), ("grpc", True)])
@pytest.mark.parametrize("pace", [Closed(3), Open.at(1000, seed=1)], ids=["closed", "open"])
def test_requests_of_sequences_come_in_order(server: ServerProcess, wire: str, stream: bool, pace: Closed) -> None:
    result = measured(server, wire, sequences(4, stream=stream), pace)
    assert result.failures == {}
    # Sequences that have begun when the count is reached are ended.
    assert 20 * LENGTH <= result.answers <= 20 * LENGTH + 4 * LENGTH


def test_callers_need_sequences_of_their_own(server: ServerProcess) -> None:
    with pytest.raises(TransportError, match="8 callers need as many sequences under way: there may be 4"):
        run(sequences(4), Closed(8), address=f"http://{server.http}")


@pytest.mark.parametrize("wrong", [{"length": 0}, {"number": 0}, {"first_id": 0}, {"number": 1 << 20}])
def test_sequences_without_bounds_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong)) if wrong != {"number": 1 << 20} else "more than"):
        Sequences(ModelRequests("counted"), **wrong)
