"""`InferenceClient` against a server that a test directs: answers out of order, nameless errors, broken streams."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from alipes.client import InferenceClient
from alipes.client.inference.backoff import Backoff
from alipes.errors import DeadlineExceeded, InferError, Overloaded, TransportError
from support.scripted import ScriptedServer, each, refused, twice
from support.waiting import TIMEOUT_S, until

SOON = Backoff(0.01, 0.05)


def backwards(requests: Iterator[Any]) -> Iterator[Any]:
    """Ten requests at a time, answered the last one first."""
    while ten := list(itertools.islice(requests, 10)):
        yield from map(twice, reversed(ten))


def number(n: float) -> np.ndarray[Any, Any]:
    return np.full((1, 1), n, np.float32)


def parameters(request: Any) -> dict[str, Any]:
    return {key: getattr(one, one.WhichOneof("parameter_choice")) for key, one in request.parameters.items()}


def test_reversed_answers_are_delivered_in_order() -> None:
    with ScriptedServer(backwards) as server:
        with InferenceClient(server.address, "m") as client:
            for n in range(20):
                client.infer(number(n), request_id=100 + n)
        answers = client.get(until_empty=True)
    assert [(y[0, 0], request_id) for y, request_id, _ in answers] == [(2 * n, 100 + n) for n in range(20)]


def test_callbacks_follow_the_request_order_of_each_sequence() -> None:
    called: list[tuple[int, int]] = []
    with (
        ScriptedServer(backwards, stateful=True) as server,
        InferenceClient(server.address, "m", callback=lambda _, n, one: called.append((one, n))) as client,
    ):
        for n in range(10):
            client.infer(number(n), n, 1 + n % 2, sequence_start=n < 2)
    assert [n for one, n in called if one == 1] == [0, 2, 4, 6, 8]
    assert [n for one, n in called if one == 2] == [1, 3, 5, 7, 9]


def test_answers_come_unordered_with_that_option() -> None:
    with ScriptedServer(backwards) as server, InferenceClient(server.address, "m", ordered=False) as client:
        for n in range(10):
            client.infer(number(n))
        answers = list(client)
    assert [request_id for _, request_id, _ in answers] == list(range(9, -1, -1))


def test_an_error_that_names_no_request_is_the_oldest_ones() -> None:
    def script(requests: Iterator[Any]) -> Iterator[Any]:
        first = next(requests)
        yield refused(first, "this one broke", named=False)
        yield from each(requests)

    with ScriptedServer(script) as server, InferenceClient(server.address, "m") as client:
        futures = [client.submit(number(n)) for n in range(3)]
        with pytest.raises(InferError, match="this one broke"):
            futures[0].result(TIMEOUT_S)
        assert [future.result(TIMEOUT_S)[0, 0] for future in futures[1:]] == [2, 4]


def test_updates_of_a_sequence_carry_no_queue_timeout() -> None:
    with (
        ScriptedServer(each, stateful=True) as server,
        InferenceClient(server.address, "m", timeout_s=60) as client,
    ):
        client.infer(number(1), 5, 7, sequence_start=True)
        client.infer(number(1), 6, 7, sequence_end=True)
        client.drain(TIMEOUT_S)
    first, second = server.requests
    assert parameters(first)["sequence_start"]
    assert parameters(second)["sequence_end"]
    assert all("timeout" not in parameters(request) for request in (first, second))
    assert [request.id for request in server.requests] == ["5_7", "6_7"]


def test_a_timeout_in_seconds_is_sent_in_microseconds() -> None:
    with ScriptedServer(each) as server, InferenceClient(server.address, "m") as client:
        client.infer(number(1), timeout_s=60)
        client.infer(number(1))
        client.drain(TIMEOUT_S)
    assert [parameters(request).get("timeout") for request in server.requests] == [60_000_000, None]


def test_no_more_requests_are_under_way_than_the_limit() -> None:
    most = 0

    def script(requests: Iterator[Any]) -> Iterator[Any]:
        nonlocal most
        for request in requests:
            most = max(most, client.in_flight)
            yield twice(request)

    with ScriptedServer(script) as server:
        client = InferenceClient(server.address, "m", max_in_flight=3)
        with client:
            for n in range(30):
                client.infer(number(n))
    assert 1 <= most <= 3


def breaks_once(after: int) -> Any:
    """A script: the first stream breaks behind so many answers, before the next one; others go on."""
    streams = itertools.count()

    def script(requests: Iterator[Any]) -> Iterator[Any]:
        first = next(streams) == 0
        for count, request in enumerate(requests):
            if first and count == after:
                raise BrokenPipeError
            yield twice(request)

    return script


def test_requests_of_no_sequence_are_sent_again_when_the_stream_breaks() -> None:
    with ScriptedServer(breaks_once(3)) as server:
        with InferenceClient(server.address, "m", retries=2, backoff=SOON) as client:
            for n in range(10):
                client.infer(number(n))
        answers = client.get(until_empty=True)
        assert server.streams == 2
    assert [(y[0, 0], request_id) for y, request_id, _ in answers] == [(2 * n, n) for n in range(10)]


def test_a_broken_stream_fails_only_its_own_requests() -> None:
    with ScriptedServer(breaks_once(1)) as server, InferenceClient(server.address, "m") as client:
        client.infer(number(1))
        assert client.get(timeout_s=TIMEOUT_S)[0][0, 0] == 2
        future = client.submit(number(2))
        with pytest.raises(TransportError, match=r"ended \(.*goes down\) before this request was answered"):
            future.result(TIMEOUT_S)
        client.infer(number(3))
        assert client.get(timeout_s=TIMEOUT_S)[0][0, 0] == 6


def test_a_busy_server_is_tried_again_after_a_pause() -> None:
    busy = itertools.count()

    def script(requests: Iterator[Any]) -> Iterator[Any]:
        for request in requests:
            yield refused(request, "Exceeds maximum queue size") if next(busy) < 3 else twice(request)

    with ScriptedServer(script) as server, InferenceClient(server.address, "m", retries=3, backoff=SOON) as client:
        assert client.submit(number(4)).result(TIMEOUT_S)[0, 0] == 8
    with ScriptedServer(script) as server, InferenceClient(server.address, "m", backoff=SOON) as client:
        busy = itertools.count()
        with pytest.raises(Overloaded):
            client.submit(number(4)).result(TIMEOUT_S)


def test_a_lost_sequence_is_reported_and_can_be_begun_anew() -> None:
    with ScriptedServer(breaks_once(2), stateful=True) as server, InferenceClient(server.address, "m") as client:
        for n in range(2):
            client.infer(number(n), n, 5, sequence_start=n == 0)
            client.get(timeout_s=TIMEOUT_S)
        lost = client.submit(number(2), 2, 5)
        with pytest.raises(TransportError, match="of sequence 5, 2 updates were answered and 1 were on their way"):
            lost.result(TIMEOUT_S)
        with pytest.raises(
            TransportError, match=r"begin a new sequence with sequence_start=True, or .*checkpoint=True"
        ):
            client.infer(number(3), 3, 5)
        client.infer(number(4), 4, 5, sequence_start=True)
        assert client.get(timeout_s=TIMEOUT_S)[0][0, 0] == 8


def test_a_checkpointed_sequence_is_rebuilt_from_its_updates() -> None:
    with ScriptedServer(breaks_once(4), stateful=True) as server:
        with InferenceClient(server.address, "m", checkpoint=2, backoff=SOON) as client:
            for n in range(4):
                client.infer(number(n), n, 5, sequence_start=n == 0)
                assert client.get(timeout_s=TIMEOUT_S)[1] == n
            for n in range(4, 8):
                client.infer(number(n), n, 5, sequence_end=n == 7)
        answers = client.get(until_empty=True)
    assert [(y[0, 0], request_id) for y, request_id, _ in answers] == [(2.0 * n, n) for n in range(4, 8)]
    again = [request for request in server.requests if request.id.startswith("replay")]
    assert [np.frombuffer(request.raw_input_contents[0], np.float32)[0] for request in again] == [2, 3]
    assert [parameters(request).get("sequence_start", False) for request in again] == [True, False]


def test_a_sequence_that_an_idle_server_has_forgotten_is_brought_back() -> None:
    def script(requests: Iterator[Any]) -> Iterator[Any]:
        known = True
        for count, request in enumerate(requests):
            known = (known or parameters(request).get("sequence_start", False)) and count != 3
            yield twice(request) if known else refused(request, "m must specify the START flag on the first request")

    with ScriptedServer(script, stateful=True) as server:
        with InferenceClient(server.address, "m", checkpoint=2) as client:
            for n in range(10):
                client.infer(number(n), n, 5, sequence_start=n == 0)
        answers = client.get(until_empty=True)
        assert server.streams == 1
    assert [(y[0, 0], request_id) for y, request_id, _ in answers] == [(2.0 * n, n) for n in range(10)]


def test_a_server_that_does_not_come_back_fails_what_waits_for_it() -> None:
    with ScriptedServer(breaks_once(1), stateful=True) as server:
        client = InferenceClient(server.address, "m", checkpoint=2, reconnect_s=0.2, backoff=SOON, connect_timeout_s=5)
        client.infer(number(0), 0, 5, sequence_start=True)
        assert client.get(timeout_s=TIMEOUT_S) is not None
    future = None
    with contextlib.suppress(TransportError):  # raised here where the client has noticed already
        future = client.submit(number(1), 1, 5)
    if future is not None:
        assert isinstance(future.exception(TIMEOUT_S), TransportError)
    with pytest.raises(TransportError):
        client.infer(number(2), 2, 5)
    client.close()


def test_requests_sent_during_a_recovery_keep_their_order() -> None:
    sent = threading.Event()

    def script(requests: Iterator[Any]) -> Iterator[Any]:
        yield twice(next(requests))
        lost = list(itertools.islice(requests, 3))
        for count, request in enumerate(lost):
            yield refused(request, "m must specify the START flag on the first request")
            if not count:
                sent.wait(TIMEOUT_S)
        yield from each(requests)

    with ScriptedServer(script, stateful=True) as server:
        with InferenceClient(server.address, "m", checkpoint=2) as client:
            for n in range(4):
                client.infer(number(n), n, 5, sequence_start=n == 0)
            until(lambda: client._queues[5].recovering)
            client.infer(number(4), 4, 5, sequence_end=True)
            sent.set()
        answers = client.get(until_empty=True)
    assert [(y[0, 0], request_id) for y, request_id, _ in answers] == [(2.0 * n, n) for n in range(5)]
    assert [np.frombuffer(request.raw_input_contents[0], np.float32)[0] for request in server.requests[4:]] == [
        0,
        1,
        2,
        3,
        4,
    ]


def test_a_late_answer_is_dropped_and_blocks_no_other() -> None:
    over = threading.Event()

    def script(requests: Iterator[Any]) -> Iterator[Any]:
        late = next(requests)
        yield from map(twice, itertools.islice(requests, 3))
        over.wait(TIMEOUT_S)
        yield twice(late)
        yield from each(requests)

    with ScriptedServer(script) as server, InferenceClient(server.address, "m") as client:
        client.infer(number(9), 9, timeout_s=0.2)
        for n in range(3):
            client.infer(number(n), n)
        with pytest.raises(DeadlineExceeded):
            client.get(timeout_s=TIMEOUT_S)
        assert [client.get(timeout_s=TIMEOUT_S)[1] for _ in range(3)] == [0, 1, 2]
        over.set()
        client.infer(number(4), 4)
        assert client.get(timeout_s=TIMEOUT_S)[1] == 4


def test_requests_are_sent_no_faster_than_the_rate() -> None:
    with ScriptedServer(each) as server, InferenceClient(server.address, "m", rate=100) as client:
        began_s = time.monotonic()
        for n in range(20):
            client.infer(number(n))
        # The first is sent at once, and of two moments of one clock the later is never the smaller.
        assert time.monotonic() - began_s >= 18 / 100
