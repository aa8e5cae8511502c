"""The limits of PyTriton's client of futures, and what its other clients do between calls, against a server."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.compat.pytriton.client import DecoupledModelClient, FuturesModelClient, ModelClient
from alipes.compat.pytriton.client.exceptions import (
    PyTritonClientClosedError,
    PyTritonClientInferenceServerError,
    PyTritonClientInvalidUrlError,
    PyTritonClientQueueFullError,
    PyTritonClientTimeoutError,
)
from alipes.compat.pytriton.client.url import TritonUrl
from support.notes import Notes
from support.python_models import add_python_model
from support.pytriton_models import write_models
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]
ONE = np.array([1], np.float32)
TWO = np.array([2], np.int32)

# Answers once the test has left a note for it.
HELD = """
class TritonPythonModel:
    def execute(self, requests):
        note("begun")
        await_note("go on")
        return [answer(y=given(request, "x")) for request in requests]
"""

# Sends a response at once, and the last one as `HELD` does.
HELD_STREAM = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            sender.send(answer(y=given(request, "x")))
            await_note("go on")
            sender.send(flags=FINAL)
"""


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path / "notes")


@pytest.fixture
def held(serve: Serve, repository: Path, notes: Notes) -> str:
    add_python_model(repository, "held", HELD, signature="x: FP32[1] -> y: FP32[1]", config="max_batch_size: 1\n")
    server = serve(repository, environment=notes.environment)
    return f"http://{server.http}"


@pytest.fixture
def counts(serve: Serve, repository: Path) -> str:
    write_models(repository, "counts", "said")
    return f"grpc://{serve(repository).grpc}"


def test_a_full_queue_refuses_a_call_or_lets_it_wait(held: str, notes: Notes) -> None:
    with FuturesModelClient(held, "held", max_workers=1, max_queue_size=1, non_blocking=True) as client:
        first = client.infer_sample(ONE)
        notes.read("begun")
        second = client.infer_sample(2 * ONE)
        with pytest.raises(PyTritonClientQueueFullError, match=r"^Queue is full$"):
            client.infer_sample(ONE)
        notes.write("go on")
        assert [future.result()["y"][0] for future in (first, second)] == [1, 2]
    notes.remove("go on")
    notes.remove("begun")
    with (
        FuturesModelClient(held, "held") as patient,
        FuturesModelClient(held, "held", max_workers=1, max_queue_size=1, inference_timeout_s=0.2) as client,
    ):
        first = patient.infer_sample(ONE)
        notes.read("begun")
        # A request that runs out of its own time makes room for the next: one of many waits in vain.
        with pytest.raises(PyTritonClientQueueFullError):
            for _ in range(50):
                client.infer_sample(ONE)
        notes.write("go on")
        assert first.result()["y"][0] == 1


def test_closing_answers_calls_before_it(held: str, notes: Notes) -> None:
    client = FuturesModelClient(held, "held", max_workers=2)
    futures = [client.infer_sample(number * ONE) for number in range(5)]
    notes.read("begun")
    client.close(wait=False)
    with pytest.raises(PyTritonClientClosedError, match=r"^FutureModelClient is already closed$"):
        client.infer_sample(ONE)
    assert not futures[-1].done()
    notes.write("go on")
    assert [future.result()["y"][0] for future in futures] == [0, 1, 2, 3, 4]
    client.close()


def test_a_future_that_is_cancelled_is_not_sent(held: str, notes: Notes) -> None:
    with FuturesModelClient(held, "held", max_workers=1) as client:
        first, second = client.infer_sample(ONE), client.infer_sample(ONE)
        notes.read("begun")
        assert second.cancel()
        notes.write("go on")
        assert first.result()["y"][0] == 1
    assert second.cancelled()


def test_a_failed_start_does_not_keep_later_calls_from_trying() -> None:
    with FuturesModelClient("http://localhost:9", "m", init_timeout_s=0.1) as client:
        for _ in range(2):
            with pytest.raises(PyTritonClientTimeoutError):
                client.infer_sample(ONE).result()


def numbers(responses: Iterable[Any]) -> list[int]:
    return [int(one["i"][0]) for one in responses]


def test_a_name_may_go_from_responses_that_are_left_to_the_next_ones(counts: str) -> None:
    with DecoupledModelClient(counts, "counts") as client:
        for _ in range(3):
            responses = client.infer_sample(TWO)
            assert next(responses)["i"] == 0
        assert len(client._sources) == 1  # the others ended with the last name that they had
        assert numbers(responses) == [1]
        assert not client._sources


def test_requests_under_way_at_a_time_get_their_own_responses(counts: str) -> None:
    with DecoupledModelClient(counts, "counts") as client:
        first, second = client.infer_sample(TWO), client.infer_batch(np.stack([TWO + 1]))
        assert next(first)["i"] == 0
        with pytest.raises(PyTritonClientInferenceServerError, match="below zero"):
            list(client.infer_sample(TWO - 9))
        assert [int(one["i"][0, 0]) for one in second] == [0, 1, 2]
        assert numbers(first) == [1]


def test_closing_ends_responses_that_are_under_way(serve: Serve, repository: Path, notes: Notes) -> None:
    config = "max_batch_size: 1\nmodel_transaction_policy { decoupled: true }\n"
    add_python_model(repository, "held", HELD_STREAM, signature="x: FP32[1] -> y: FP32[1]", config=config)
    client = DecoupledModelClient(f"grpc://{serve(repository, environment=notes.environment).grpc}", "held")
    first = client.infer_sample(ONE)
    assert next(first)["y"] == 1  # each request has a stream: of two, the server may take the second one first
    second = client.infer_sample(ONE)
    client.close()
    notes.write("go on")
    for responses in (first, second):
        with pytest.raises(PyTritonClientInferenceServerError):
            list(responses)
    with pytest.raises(PyTritonClientClosedError):
        client.infer_sample(ONE)


def test_many_sets_of_headers_leave_few_connections(counts: str) -> None:
    with ModelClient(counts, "said") as client:
        for number in range(40):
            client.infer_sample(ONE, headers={"number": number})
        assert client._clients is not None
        assert len(client._clients._clients) == 16
        assert client.infer_sample(ONE)["y"].shape == (1,)


@pytest.mark.parametrize("url", ["", "http://", "grpc://:8001"])
def test_an_address_without_a_host_is_refused(url: str) -> None:
    with pytest.raises(PyTritonClientInvalidUrlError, match=r"^Invalid url "):
        TritonUrl.from_url(url)
