"""`client.stream`: each response of a request as the server makes it, waited for and awaited."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from alipes.client import AsyncClient, Client
from alipes.errors import AlipesError, DeadlineExceeded, InvalidArgument, NotFound, TransportError, Unsupported
from support.models import add_model, counts_up, times
from support.notes import Notes
from support.python_models import DECOUPLED, REPORTS, add_python_model
from support.server import ServerProcess
from support.switch import Switch

Serve = Callable[..., ServerProcess]

# Gives X as a response again and again, and tells when the client wants no more.
ENDLESS = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender, value = request.get_response_sender(), given(request)
            while not sender.is_cancelled():
                sender.send(answer(Y=value))
                time.sleep(0.002)
            note("cancelled")
            sender.send(flags=FINAL)
"""

# Gives one response, then fails or waits.
ONE_AND = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            sender.send(answer(Y=given(request)))
            if given(request)[0] < 0:
                error = pb_utils.TritonError("that is negative")
                sender.send(pb_utils.InferenceResponse(error=error), flags=FINAL)
            else:
                while not sender.is_cancelled():
                    time.sleep(0.002)
                sender.send(flags=FINAL)
"""

COUNTS = """
sequence_batching {
  max_sequence_idle_microseconds: 60000000
  state [ { input_name: "OLD" output_name: "NEW" data_type: TYPE_INT32 dims: [ 1 ]
            initial_state: { data_type: TYPE_INT32 dims: [ 1 ] zero_data: true name: "zero" } } ]
}
max_batch_size: 1
"""

VALUES = np.array([3, 1, 2], np.int32)


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Notes:
    return Notes(tmp_path_factory.mktemp("notes"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve, notes: Notes) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double", times(2.0))
    add_model(repository, "count", counts_up(), config=COUNTS)
    for name, source in (("tells", REPORTS), ("endless", ENDLESS), ("one-and", ONE_AND)):
        add_python_model(repository, name, source, config=DECOUPLED)
    return serve_module(repository, environment=notes.environment)


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.grpc) as client:
        yield client


def test_each_response_is_yielded_as_infer_returns_it(client: Client) -> None:
    assert [response.tolist() for response in client.stream("tells", VALUES)] == [[3], [1], [2]]
    assert [response["Y"].tolist() for response in client.stream("tells", {"X": VALUES})] == [[3], [1], [2]]
    some = client.stream("tells", {"X": VALUES[:1]}, outputs=["Y"], version=1)
    assert [response["Y"].tolist() for response in some] == [[3]]


def test_no_response_and_a_single_one_are_streams_too(client: Client) -> None:
    assert list(client.stream("tells", np.array([], np.int32))) == []
    assert [response.tolist() for response in client.stream("double", [[1.0, 2.0]])] == [[[2.0, 4.0]]]


def test_infer_of_a_decoupled_model_says_to_stream(client: Client, server: ServerProcess) -> None:
    for other in (client, Client(f"http://{server.http}")):
        for _ in range(2):
            with pytest.raises(Unsupported, match=r"transaction policy: ask model 'tells' with stream\(\), over gRPC$"):
                other.infer("tells", VALUES)


def test_an_awaited_stream_is_the_stream(server: ServerProcess) -> None:
    async def read() -> list[int]:
        async with AsyncClient(server.grpc) as client, await client.stream("tells", VALUES) as responses:
            return [int(response[0]) async for response in responses]

    assert asyncio.run(read()) == [3, 1, 2]


def test_leaving_the_loop_cancels_the_request(client: Client, notes: Notes) -> None:
    for response in client.stream("endless", VALUES):
        assert response.tolist() == [3, 1, 2]
        break
    notes.read("cancelled")
    notes.remove("cancelled")
    with client.stream("endless", VALUES) as responses:
        next(responses)
    notes.read("cancelled")
    notes.remove("cancelled")
    assert list(responses) == []


def test_leaving_an_awaited_loop_cancels_the_request(server: ServerProcess, notes: Notes) -> None:
    async def leave() -> None:
        async with AsyncClient(server.grpc) as client:
            async for response in client.stream("endless", {"X": VALUES}):
                assert response["Y"].tolist() == [3, 1, 2]
                break
            await asyncio.to_thread(notes.read, "cancelled")
            notes.remove("cancelled")

            async def read() -> None:
                async for _ in client.stream("one-and", VALUES):
                    arrived.set()

            arrived = asyncio.Event()
            reader = asyncio.create_task(read())
            await arrived.wait()
            reader.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reader

    asyncio.run(leave())


def test_many_streams_are_awaited_at_a_time(server: ServerProcess) -> None:
    async def read(client: AsyncClient, count: int) -> list[int]:
        return [int(response[0]) async for response in client.stream("tells", np.arange(count, dtype=np.int32))]

    async def read_all() -> list[list[int]]:
        async with AsyncClient(server.grpc) as client:
            return await asyncio.gather(*(read(client, count) for count in range(30)))

    assert asyncio.run(read_all()) == [list(range(count)) for count in range(30)]


def test_an_error_ends_the_stream_behind_its_responses(client: Client) -> None:
    responses = client.stream("one-and", np.array([-1], np.int32), request_id="r1")
    assert next(responses).tolist() == [-1]
    with pytest.raises(AlipesError, match="that is negative") as raised:
        next(responses)
    assert (raised.value.model, raised.value.request_id) == ("one-and", "r1")  # type: ignore[attr-defined]
    assert list(responses) == []


def test_a_response_that_takes_too_long_is_an_error(client: Client) -> None:
    responses = client.stream("one-and", VALUES, timeout=2)
    next(responses)
    with pytest.raises(DeadlineExceeded, match=r"no further response within 2 s"):
        next(responses)


def test_what_does_not_fit_is_an_error_before_anything_is_sent(client: Client) -> None:
    with pytest.raises(InvalidArgument, match=r"no option 'prio': there are 'priority'"):
        client.stream("tells", VALUES, prio=1)  # type: ignore[call-overload]
    with pytest.raises(InvalidArgument, match="takes INT32"):
        next(client.stream("tells", VALUES.astype(np.int64)))
    with pytest.raises(NotFound, match=r"unknown model: 'tell' .*; the server has 'tells'"):
        next(client.stream("tell", VALUES))


def test_over_http_the_error_says_where_grpc_is(server: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    from alipes.client import wrong_port

    expected = rf"stream\(\) needs gRPC, and this client asks http://{server.http} over HTTP; pass the address"
    with pytest.raises(Unsupported, match=expected):
        next(Client(f"http://{server.http}").stream("tells", VALUES))
    distance = int(server.grpc.rpartition(":")[2]) - int(server.http.rpartition(":")[2])
    monkeypatch.setattr(wrong_port, "_STEPS", {("grpc", "http"): distance})
    with pytest.raises(Unsupported, match=rf"over HTTP; gRPC is at {server.grpc}: pass '{server.grpc}'"):
        next(Client(f"http://{server.http}").stream("tells", VALUES))


def test_threads_stream_side_by_side(client: Client) -> None:
    seen: dict[int, Any] = {}

    def read(count: int) -> None:
        seen[count] = [int(response[0]) for response in client.stream("tells", np.arange(count, dtype=np.int32))]

    threads = [threading.Thread(target=read, args=(count,)) for count in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {count: list(range(count)) for count in range(8)}


@pytest.mark.parametrize("sequence_id", [2**63 + 5, "abc"])
def test_a_stream_may_be_a_step_of_a_sequence(client: Client, sequence_id: int | str) -> None:
    one = np.ones((1, 1), np.int32)
    seen = [
        [
            int(y[0, 0])
            for y in client.stream(
                "count",
                one,
                sequence_id=sequence_id,
                sequence_start=step == 0,
                sequence_end=step == 2,
                queue_timeout_s=60,
            )
        ]
        for step in range(3)
    ]
    assert seen == [[1], [2], [3]]


def test_outputs_of_a_stream_are_named_and_not_placed(client: Client) -> None:
    with pytest.raises(InvalidArgument, match="outputs: expected a list of names, as responses"):
        next(client.stream("double", [[1.0, 2.0]], outputs={"Y": None}))  # type: ignore[call-overload]


def test_a_connection_that_breaks_ends_the_stream_with_an_error(server: ServerProcess) -> None:
    with Switch(server.grpc) as switch, Client(switch.address) as client:
        responses = client.stream("one-and", VALUES)
        next(responses)
        switch.lead(None)
        with pytest.raises(TransportError):
            next(responses)
        assert list(responses) == []
        switch.lead(server.grpc)
        assert [int(response[0]) for response in client.stream("tells", VALUES)] == [3, 1, 2]
