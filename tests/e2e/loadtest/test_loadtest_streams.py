"""Load tests over streams of gRPC, with models that answer once and with models that answer as often as they like."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from alipes import ConfigError
from alipes.loadtest import Closed, Measuring, ModelRequests, Open, RequestLog, run
from alipes.loadtest.measure import prepare, running
from support.models import add_model, times
from support.python_models import DECOUPLED, add_python_model
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

# Gives each value of X as a response of its own; a negative one is an error, and ends the request.
TELLS = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for value in given(request):
                if value < 0:
                    sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("it is negative")))
                    break
                sender.send(answer(Y=np.array([value], np.int32)))
            sender.send(flags=FINAL)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    repository: Path = tmp_path_factory.mktemp("models")
    add_model(repository, "double", times(columns=3))
    add_python_model(repository, "tells", TELLS, signature="X: INT32[-1] -> Y: INT32[1]", config=DECOUPLED)
    return serve_module(repository)


def tells(*values: list[int]) -> ModelRequests:
    return ModelRequests("tells", data={"X": np.array(values, np.int32)}, stream=True)


@pytest.mark.parametrize("pace", [Closed(3), Open.at(500, seed=1)], ids=["closed", "open"])
def test_a_decoupled_model_answers_as_often_as_it_likes(server: ServerProcess, pace: Closed | Open) -> None:
    measuring = Measuring(count=50, threads=2)
    result = run(tells([1, 2, 3, 4]), pace, address=f"grpc://{server.grpc}", measuring=measuring).levels[0].result
    assert (result.answers, result.failures) == (50, {})
    assert result.streams is not None
    assert result.streams.responses == 200
    assert (result.streams.first.count, result.streams.gaps.count) == (50, 150)
    assert result.streams.first.percentile_ms(50) <= result.latencies.percentile_ms(50)


def test_a_decoupled_model_may_answer_with_nothing(server: ServerProcess) -> None:
    measuring = Measuring(count=10)
    empty = ModelRequests("tells", data={"X": np.zeros((1, 0), np.int32)}, stream=True)
    result = run(empty, address=f"grpc://{server.grpc}", measuring=measuring).levels[0].result
    assert (result.answers, result.failures) == (10, {})
    assert result.streams is not None
    assert result.streams.responses == 0


def test_a_model_that_answers_once_is_measured_over_streams(server: ServerProcess) -> None:
    measuring = Measuring(count=50, threads=2)
    requests = ModelRequests("double", stream=True)
    result = run(requests, Closed(4), address=f"grpc://{server.grpc}", measuring=measuring).levels[0].result
    assert (result.answers, result.failures) == (50, {})
    assert result.streams is not None
    assert (result.streams.responses, result.streams.gaps.count) == (50, 0)


def test_an_error_on_a_stream_fails_its_request_alone(server: ServerProcess) -> None:
    measuring = Measuring(count=40)
    requests = tells([1, 2], [3, -1])
    result = run(requests, Closed(2), address=f"grpc://{server.grpc}", measuring=measuring).levels[0].result
    assert (result.answers, sum(result.failures.values())) == (20, 20)
    assert all("it is negative" in text for text in result.failures)


def test_streams_need_grpc(server: ServerProcess) -> None:
    with pytest.raises(ConfigError, match="streams need gRPC"):
        run(tells([1]), address=f"http://{server.http}")


def test_requests_are_logged_one_by_one(server: ServerProcess) -> None:
    requests = prepare(tells([1, 2], [3, 4]), f"grpc://{server.grpc}")
    with running(requests, Closed(2), Measuring(count=20, log=15)) as engine:
        assert engine.wait(60)
        log = RequestLog.read(engine.cut())
    assert (len(log), log.missing) == (15, 5)
    assert set(log.request.tolist()) == {0, 1}
    assert log.responses.tolist() == [2] * 15
    assert not log.failed.any()
    assert (log.due_ns <= log.begun_ns).all()
    for entry in range(15):
        moments = log.responses_of(entry)
        assert log.begun_ns[entry] < moments[0] <= moments[1] <= log.end_ns[entry]
