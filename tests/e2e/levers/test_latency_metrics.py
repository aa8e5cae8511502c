"""Histograms and summaries count what requests went through, for both kinds of models."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from alipes.quickstart import digits
from support.endpoints import HttpEndpoint
from support.exposition import samples
from support.notes import Notes
from support.python_models import DECOUPLED, add_python_model
from support.server import ServerProcess
from support.streams import Stream

Serve = Callable[..., ServerProcess]

LATE = """
import time

class TritonPythonModel:
    def execute(self, requests):
        time.sleep(0.12)
        return [answer(Y=given(request)) for request in requests]
"""

# The second response takes its time from when the first one has arrived.
TWICE = """
import time

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            sender.send(answer(Y=given(request)))
            await_note("the first has come")
            time.sleep(0.15)
            sender.send(answer(Y=given(request)), flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""

BUCKETS = """
model_metrics { metric_control {
  metric_identifier { family: "nv_inference_first_response_histogram_ms" }
  histogram_options { buckets: [ 100, 100000 ] }
} }
"""


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Notes:
    return Notes(tmp_path_factory.mktemp("notes"))


@pytest.fixture(scope="module")
def server(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory, notes: Notes) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_python_model(repository, "late", LATE, config=BUCKETS)
    add_python_model(repository, "twice", TWICE, config=BUCKETS + DECOUPLED)
    flags = ("histogram_latencies=true", "summary_latencies=true", "summary_quantiles=0.5:0.05,0.99:0.001")
    return serve_module(repository, *(f"--metrics-config={flag}" for flag in flags), environment=notes.environment)


def test_a_late_answer_is_late_in_every_family(server: ServerProcess) -> None:
    with HttpEndpoint(server) as endpoint:
        for _ in range(3):
            endpoint.ask("late", {"X": [1]})
    found = samples(server)
    of = 'model="late",version="1"'
    assert found[f'alipes_inference_request_seconds_bucket{{{of},le="0.1"}}'] == 0
    assert found[f"alipes_inference_request_seconds_count{{{of}}}"] == 3
    assert found[f"alipes_inference_queue_seconds_count{{{of}}}"] == 3
    assert found[f'alipes_inference_batch_rows_bucket{{{of},le="1"}}'] == 3
    assert found[f'nv_inference_first_response_histogram_ms_bucket{{{of},le="100"}}'] == 0
    assert found[f'nv_inference_first_response_histogram_ms_bucket{{{of},le="100000"}}'] == 3
    for part in ("request", "compute_infer"):
        name = f"nv_inference_{part}_summary_us"
        assert 115_000 <= found[f'{name}{{{of},quantile="0.5"}}'] <= 60_000_000
        assert (found[f"{name}_count{{{of}}}"], found[f"{name}_sum{{{of}}}"] >= 345_000) == (3, True)
    assert found[f"nv_model_load_duration_secs{{{of}}}"] > 0


def test_the_first_of_many_responses_is_counted_and_no_other(server: ServerProcess, notes: Notes) -> None:
    with Stream(server) as stream:
        stream.send("twice", {"X": [1]})
        stream.receive()
        notes.write("the first has come")
        assert stream.receive()[1]
    found = samples(server)
    of = 'model="twice",version="1"'
    assert found[f"nv_inference_first_response_histogram_ms_count{{{of}}}"] == 1
    assert (
        found[f"nv_inference_first_response_histogram_ms_sum{{{of}}}"]
        < found[f"alipes_inference_request_seconds_sum{{{of}}}"] * 1000 - 140
    )


def test_what_is_switched_off_is_not_there(serve: Serve) -> None:
    off = ("counter_latencies=false", "request_histograms=false")
    names = " ".join(samples(serve(digits.REPOSITORY, *(f"--metrics-config={flag}" for flag in off))))
    assert not re.search("duration_us|alipes_inference_(request|queue|batch)|summary|histogram", names)


def test_a_histogram_that_is_not_known_gives_a_notice(repository: Path, serve: Serve) -> None:
    add_python_model(repository, "late", LATE, config=BUCKETS.replace("first", "last"))
    serve(repository).wait_for_output("model_metrics of model 'late' names 'nv_inference_last_response_histogram_ms'")
