"""Streams count among the outcomes of the versions of a decoupled model, so that a rollout of one has a verdict."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import alipes
import numpy as np
import pytest
from alipes.errors import AlipesError
from alipes.rollout import RolloutPlan, Tolerance, run_rollout
from support.notes import Notes
from support.python_models import DECOUPLED, add_python_model
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

ALL_VERSIONS = "version_policy { all { } }\n"

# Gives each number back as a response of its own. A negative one ends the stream, or holds it.
STORY = """
FAILS, REFUSES, WATCHES, WAITS = -1, -2, -3, -4

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            self.tell(request.get_response_sender(), given(request))

    def tell(self, sender, numbers):
        for number in numbers:
            if number == FAILS:
                return sender.send(failure("no luck"), flags=FINAL)
            if number == REFUSES:
                return sender.send(failure("not so", pb_utils.TritonError.INVALID_ARG), flags=FINAL)
            if number == WATCHES:
                while not sender.is_cancelled():
                    time.sleep(0.002)
                note("cancelled")
            elif number == WAITS:
                await_note("go on")
            else:
                sender.send(answer(Y=np.array([number], np.int32)))
        sender.send(flags=FINAL)


def failure(text, *code):
    return pb_utils.InferenceResponse(output_tensors=[], error=pb_utils.TritonError(text, *code))
"""

# Version 2 breaks every third stream off.
BREAKS = """
class TritonPythonModel:
    def initialize(self, args):
        self.is_new, self.streams = args["model_version"] == "2", 0

    def execute(self, requests):
        for request in requests:
            self.streams += 1
            sender = request.get_response_sender()
            sender.send(answer(Y=given(request)[:1]))
            sender.send(answer(Y=given(request)[1:]))
            broken = self.is_new and self.streams % 3 == 0
            error = pb_utils.TritonError("broken off")
            last = pb_utils.InferenceResponse(output_tensors=[], error=error) if broken else None
            sender.send(last, flags=FINAL) if broken else sender.send(flags=FINAL)
"""


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Notes:
    return Notes(tmp_path_factory.mktemp("notes"))


@pytest.fixture(scope="module")
def story(
    tmp_path_factory: pytest.TempPathFactory, notes: Notes, serve_module: Callable[..., ServerProcess]
) -> ServerProcess:
    repository = tmp_path_factory.mktemp("repository")
    config = DECOUPLED + ALL_VERSIONS
    for name in ("counted", "left", "moved"):
        add_python_model(repository, name, STORY, config=config, versions=(1, 2))
    add_python_model(repository, "plain", config=ALL_VERSIONS, versions=(1, 2))
    return serve_module(repository, environment=notes.environment)


def events_of(server: ServerProcess, model: str, *numbers: int) -> Iterator[dict[str, Any]]:
    """The events of a stream over HTTP; leaving ends the connection."""
    with closing(http.client.HTTPConnection(server.http, timeout=TIMEOUT_S)) as connection:
        connection.request("POST", f"/v2/models/{model}/generate_stream", json.dumps({"X": numbers}))
        answer = connection.getresponse()
        for line in iter(answer.readline, b""):
            if line != b"\n":
                yield json.loads(line.removeprefix(b"data: "))


def responses_of(server: ServerProcess, model: str, *numbers: int) -> Iterator[dict[str, Any]]:
    """The responses of a stream over gRPC, or its error."""
    with alipes.Client(f"grpc://{server.grpc}") as client:
        try:
            for outputs in client.stream(model, {"X": np.array(numbers, np.int32)}):
                yield {"Y": int(outputs["Y"][0])}
        except AlipesError as error:
            yield {"error": str(error)}


STREAMS = {"generate_stream": events_of, "ModelStreamInfer": responses_of}


def totals(outcomes: dict[int, dict[str, Any]]) -> tuple[int, int]:
    """Requests that were answered and that failed, of all versions."""
    parts = outcomes.values()
    return sum(part["answered"] for part in parts), sum(part["failed"] for part in parts)


@pytest.mark.parametrize("protocol", STREAMS)
def test_each_stream_counts_once_by_how_it_ended(story: ServerProcess, protocol: str) -> None:
    def ended(*numbers: int) -> str:
        return list(STREAMS[protocol](story, "counted", *numbers))[-1].get("error", "")

    with alipes.Client(f"http://{story.http}") as client:
        client.set_traffic("counted", {1: 50, 2: 50})
        assert [ended(5, 6, 7) for _ in range(10)] == [""] * 10
        assert ended(8) == ""
        for _ in range(4):
            assert "no luck" in ended(5, -1)
        # By its caller's fault.
        assert "not so" in ended(5, -2)
        until(lambda: totals(client.traffic_outcomes("counted")) == (11, 4))
        outcomes = client.traffic_outcomes("counted")
    for version in outcomes.values():
        # Of sixteen requests each version has eight.
        assert 7 <= version["answered"] + version["failed"] <= 8
        assert sum(count for _, count in version["latency_us"]) == version["answered"]
        assert len(version["samples"]["Y"]) == version["answered"]
    samples = [sample for version in outcomes.values() for sample in version["samples"]["Y"]]
    # One number of the first response alone: of five, or of eight.
    assert len(set(samples)) == 2
    intervals = [count for version in outcomes.values() for _, count in version["response_interval_us"]]
    assert sum(intervals) == 10


@pytest.mark.parametrize("protocol", STREAMS)
def test_a_stream_that_its_caller_leaves_counts_as_nothing(story: ServerProcess, notes: Notes, protocol: str) -> None:
    with alipes.Client(f"http://{story.http}") as client:
        client.set_traffic("left", {1: 1})
        responses = STREAMS[protocol](story, "left", 5, -3)
        assert next(responses)["Y"] == 5
        responses.close()
        notes.read("cancelled")
        notes.remove("cancelled")
        # One instance answers in turn, so the stream that was left has ended before this one does.
        assert [response["Y"] for response in STREAMS[protocol](story, "left", 6, 7)] == [6, 7]
        until(lambda: totals(client.traffic_outcomes("left")) == (1, 0))
        assert sum(count for _, count in client.traffic_outcomes("left")[1]["latency_us"]) == 1


def test_a_stream_counts_for_the_weights_under_which_it_began(story: ServerProcess, notes: Notes) -> None:
    with alipes.Client(f"http://{story.http}") as client:
        client.set_traffic("moved", {1: 1})
        responses = responses_of(story, "moved", 5, -4, 6)
        assert next(responses)["Y"] == 5
        client.set_traffic("moved", {1: 1, 2: 1})
        notes.write("go on")
        assert [response["Y"] for response in responses] == [6]
        # It names no other version, so all that follows would be seen beside it.
        assert [response["Y"] for response in responses_of(story, "moved", 7)] == [7]
        until(lambda: totals(client.traffic_outcomes("moved")) == (1, 0))


def test_a_model_of_one_response_counts_over_every_stream(story: ServerProcess) -> None:
    """One stream of gRPC, two of HTTP, one answer to `generate`, and ordinary requests."""
    with alipes.Client(f"http://{story.http}") as client:
        client.set_traffic("plain", {1: 50, 2: 50})
        assert [response["Y"] for response in responses_of(story, "plain", 5)] == [5]
        for _ in range(2):
            assert [event["Y"] for event in events_of(story, "plain", 5)] == [5]
        with closing(http.client.HTTPConnection(story.http, timeout=TIMEOUT_S)) as connection:
            connection.request("POST", "/v2/models/plain/generate", json.dumps({"X": [5]}))
            assert json.loads(connection.getresponse().read())["Y"] == 5
        client.infer("plain", {"X": np.array([5], np.int32)})
        until(lambda: totals(client.traffic_outcomes("plain")) == (5, 0))
        assert all("response_interval_us" not in version for version in client.traffic_outcomes("plain").values())


@contextmanager
def streamed(server: ServerProcess, model: str) -> Iterator[None]:
    """Streams over both protocols, until it is left."""
    over = threading.Event()

    def run(protocol: str) -> None:
        while not over.is_set():
            list(STREAMS[protocol](server, model, 5, 6))

    callers = [threading.Thread(target=run, args=(protocol,)) for protocol in STREAMS]
    for caller in callers:
        caller.start()
    try:
        yield
    finally:
        over.set()
        for caller in callers:
            caller.join(TIMEOUT_S)


def test_a_version_whose_streams_break_off_is_rolled_back(serve: Callable[..., ServerProcess], tmp_path: Path) -> None:
    add_python_model(tmp_path, "breaks", BREAKS, config=DECOUPLED + ALL_VERSIONS, versions=(1, 2))
    server = serve(tmp_path)
    tolerance = Tolerance(errors=0.1, latency=9.0, drift=0.4)
    plan = RolloutPlan("breaks", 1, 2, steps=(50,), last_step_s=TIMEOUT_S, look_s=0.2, tolerance=tolerance)
    with alipes.Client(f"http://{server.http}") as client:
        client.set_traffic("breaks", {1: 1})
        with streamed(server, "breaks"):
            end = run_rollout(client, plan)
        assert (end.promoted, end.reason.partition(":")[0]) == (False, "errors"), end
        assert client.traffic("breaks").weights == {1: 1}
