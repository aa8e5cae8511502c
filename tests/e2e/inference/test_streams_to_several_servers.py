"""Streams of requests to several real servers: spread, in order, and with servers that come and go."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from alipes.client import Client, InferenceClient, StreamClient
from alipes.errors import AlipesError, TransportError
from support.models import add_model, counts_up, times
from support.ports import unused_address
from support.server import ServerProcess
from support.switch import Switch
from support.waiting import until

Serve = Callable[..., ServerProcess]

COUNTS = """
sequence_batching {
  max_sequence_idle_microseconds: 600000000
  state [ { input_name: "OLD" output_name: "NEW" data_type: TYPE_INT32 dims: [ 1 ]
            initial_state: { data_type: TYPE_INT32 dims: [ 1 ] zero_data: true name: "zero" } } ]
}
max_batch_size: 8
"""

ROW = np.ones((1, 2), np.float32)
ONE = np.ones((1, 1), np.int32)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> list[ServerProcess]:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double", times(columns="columns"))
    add_model(repository, "count", counts_up(), config=COUNTS)
    return [serve_module(repository) for _ in range(2)]


@pytest.fixture
def switches(pair: list[ServerProcess]) -> Iterator[list[Switch]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Switch(server.grpc)) for server in pair]


def executed(server: ServerProcess, model: str = "double") -> int:
    """The requests that a server has executed."""
    with Client(server.grpc) as client:
        return int(client.statistics(model)[0]["inference_stats"]["success"]["count"])


def addresses(switches: list[Switch]) -> list[str]:
    return [switch.address for switch in switches]


def test_requests_are_spread_and_answered_in_their_order(pair: list[ServerProcess]) -> None:
    before = [executed(server) for server in pair]
    with StreamClient([server.grpc for server in pair], "double") as client:
        for number in range(200):
            client.send(ROW * number, number)
        answers = list(client)
        assert [number for _, number, _ in answers] == list(range(200))
        assert [y[0, 0] for y, _, _ in answers] == [2.0 * number for number in range(200)]
        assert client.infer(ROW).tolist() == [[2, 2]]
        assert client.is_ready()
    counts = [executed(server) - count for server, count in zip(pair, before, strict=True)]
    assert sum(counts) == 201
    assert min(counts) > 20


def test_a_callback_is_called_in_order_and_may_send(pair: list[ServerProcess]) -> None:
    seen: list[int] = []

    def note(_: Any, number: int, __: Any) -> None:
        seen.append(number)
        if number < 50:
            client.send(ROW, number + 1000)

    with StreamClient([server.grpc for server in pair], "double", callback=note) as client:
        for number in range(100):
            client.send(ROW, number)
        until(lambda: len(seen) == 150)
    first = [number for number in seen if number < 1000]
    assert first == list(range(100))
    assert sorted(number for number in seen if number >= 1000) == list(range(1000, 1050))


def test_sequences_stay_and_are_lost_with_their_server(pair: list[ServerProcess], switches: list[Switch]) -> None:
    before = [executed(server, "count") for server in pair]
    with StreamClient(addresses(switches), "count") as client:

        def update(sequence: int, **flags: bool) -> int:
            return int(client.infer(ONE, sequence_id=sequence, **flags)[0, 0])

        assert [update(one, sequence_start=True) for one in range(1, 5)] == [1, 1, 1, 1]
        assert [update(one) for _ in range(2) for one in range(1, 5)] == [2] * 4 + [3] * 4
        assert [executed(server, "count") - count for server, count in zip(pair, before, strict=True)] == [6, 6]
        switches[0].lead(None)
        outcomes: list[Any] = []
        for one in range(1, 5):
            try:
                outcomes.append(update(one))
            except AlipesError as error:
                outcomes.append(str(error))
        assert outcomes.count(4) == 2
        lost = [one for one, outcome in enumerate(outcomes, 1) if outcome != 4]
        assert all("sequence_start=True" in outcomes[one - 1] for one in lost)
        assert [update(one, sequence_start=True) for one in lost] == [1, 1]
        assert [update(one, sequence_end=True) for one in lost] == [2, 2]


def test_a_sequence_with_a_checkpoint_goes_on_at_another_server(
    pair: list[ServerProcess], switches: list[Switch]
) -> None:
    with StreamClient(addresses(switches), "count", checkpoint=100) as client:
        seen: dict[int, list[int]] = {one: [] for one in range(1, 5)}
        for step in range(8):
            if step == 4:
                switches[1].lead(None)
            for one, counts in seen.items():
                counts.append(int(client.infer(ONE, sequence_id=one, sequence_start=not step)[0, 0]))
        assert list(seen.values()) == [list(range(1, 9))] * 4


def test_a_server_that_ends_under_load_costs_no_request_and_is_found_again(
    pair: list[ServerProcess], switches: list[Switch]
) -> None:
    with StreamClient(addresses(switches), "double", max_in_flight=64) as client:
        stop = threading.Event()
        failed: list[BaseException] = []
        answered = [0]

        def work() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                try:
                    assert client.infer(ROW * number)[0, 0] == 2 * number
                except BaseException as error:
                    failed.append(error)
                answered[0] += 1

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        until(lambda: answered[0] > 50)
        switches[0].lead(None)
        seen = answered[0]
        until(lambda: answered[0] > seen + 50)
        before = executed(pair[0])
        switches[0].lead(pair[0].grpc)
        until(lambda: executed(pair[0]) > before + 20)
        stop.set()
        for thread in threads:
            thread.join()
    assert failed == []


def test_dead_servers_and_those_of_another_kind_are_left_out(pair: list[ServerProcess]) -> None:
    dead = unused_address()
    with StreamClient([dead, pair[0].metrics, pair[1].grpc], "double") as client:
        for number in range(20):
            client.send(ROW * number, number)
        assert [number for _, number, _ in client] == list(range(20))
    with InferenceClient(f"{dead},{pair[1].grpc}", "double") as client:
        client.infer(ROW[:, :1])
        assert client.get(timeout_s=None)[0].tolist() == [[2]]
    with pytest.raises(TransportError) as raised:
        StreamClient([dead, pair[0].metrics], "double")
    text = str(raised.value)
    assert text.startswith("none of the 2 servers can answer: ")
    assert dead in text
    assert f"the server at {pair[0].metrics} is no inference server" in text


def test_where_all_servers_end_each_is_named(pair: list[ServerProcess], switches: list[Switch]) -> None:
    with StreamClient(addresses(switches), "double", reconnect_s=0.3) as client:
        assert client.infer(ROW).tolist() == [[2, 2]]
        for switch in switches:
            switch.lead(None)

        def failure() -> str:
            try:
                client.infer(ROW)
            except TransportError as error:
                return str(error)
            return ""

        until(lambda: all(one in failure() for one in addresses(switches)))
        for server, switch in zip(pair, switches, strict=True):
            switch.lead(server.grpc)
        until(lambda: not failure())
