"""`StreamClient` against a server of ours: a stream of requests in the words of `Client`."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from alipes.client import Client, InferenceClient, Retry, StreamClient
from alipes.client.inference.request_stream import RequestStream
from alipes.errors import (
    AlipesError,
    ConfigError,
    DeadlineExceeded,
    InvalidArgument,
    NotFound,
    Overloaded,
    TransportError,
)
from support.models import add_model, counts_up, times
from support.notes import Notes
from support.python_models import DECOUPLED, REPORTS, add_python_model
from support.server import ServerProcess
from support.switch import Switch

Serve = Callable[..., ServerProcess]

COUNTS = """
sequence_batching {
  max_sequence_idle_microseconds: 60000000
  state [ { input_name: "OLD" output_name: "NEW" data_type: TYPE_INT32 dims: [ 1 ]
            initial_state: { data_type: TYPE_INT32 dims: [ 1 ] zero_data: true name: "zero" } } ]
}
max_batch_size: 1
"""

PAIR = """
class TritonPythonModel:
    def execute(self, requests):
        return [answer(P=given(r, "A") + 1, Q=given(r, "B") * 2) for r in requests]
"""

WAITS = """
class TritonPythonModel:
    def execute(self, requests):
        await_note("go")
        return [answer(Y=given(request)) for request in requests]
"""

ONE = np.ones((1, 1), np.int32)


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Notes:
    return Notes(tmp_path_factory.mktemp("notes"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve, notes: Notes) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double", times(2.0), versions=(1, 3), config="version_policy { all { } }")
    add_model(repository, "count", counts_up(), config=COUNTS)
    add_python_model(repository, "words", signature="X: BYTES[-1] -> Y: BYTES[-1]")
    add_python_model(repository, "pair", PAIR, signature="A: INT32[-1], B: FP64[-1] -> P: INT32[-1], Q: FP64[-1]")
    add_python_model(repository, "tells", REPORTS, config=DECOUPLED)
    add_python_model(repository, "waits", WAITS)
    flags = ("--model-control-mode=explicit", "--load-model=*")
    return serve_module(repository, *flags, environment=notes.environment)


@pytest.fixture
def client(server: ServerProcess) -> Iterator[StreamClient]:
    with StreamClient(server.grpc, "double") as client:
        yield client


def rows(value: float = 1.0, count: int = 1) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.full((count, 2), value, np.float32)


def test_infer_waits_and_returns_what_a_client_returns(client: StreamClient, server: ServerProcess) -> None:
    with Client(server.grpc) as plain:
        for inputs in (rows(3), {"X": rows(4)}, [[1, 2]], rows(5, 4), np.asfortranarray(rows(6, 3))):
            mine, others = client.infer(inputs), plain.infer("double", inputs)
            assert type(mine) is type(others)
            np.testing.assert_equal(mine, others)


def test_any_model_without_streams_takes_what_a_client_sends(server: ServerProcess) -> None:
    with StreamClient(server.grpc, "words") as client:
        assert client.infer(["one", "zwölf", ""]).tolist() == [b"one", "zwölf".encode(), b""]
    with StreamClient(server.grpc, "pair") as client:
        outputs = client.infer({"A": np.array([1, 2], np.int32), "B": [0.5]})
        assert (outputs["P"].tolist(), outputs["Q"].tolist()) == ([2, 3], [1.0])
        for wrong, text in (
            ({"A": np.array([1], np.int32)}, "also takes the input 'B'"),
            ({"A": ONE[0], "B": [1.0], "C": 1}, "has no input 'C': its inputs are 'A', 'B'"),
            (rows(), "has the inputs 'A', 'B': pass a dictionary"),
            ({"A": rows()[0], "B": [1.0]}, r"takes INT32, the array has float32: convert it with .astype\(np.int32\)"),
        ):
            with pytest.raises(InvalidArgument, match=text):
                client.infer(wrong)
    with StreamClient(server.grpc, "double", cast=True) as client:
        assert client.infer(rows().astype(np.float64)).tolist() == [[2, 2]]


def test_answers_are_read_from_futures_a_loop_and_a_callback(server: ServerProcess) -> None:
    with StreamClient(server.grpc, "double") as client:
        futures = [client.submit(rows(value)) for value in range(20)]
        assert [future.result()[0, 0] for future in futures] == [2.0 * value for value in range(20)]
        for value in range(20):
            client.send({"X": rows(value)}, request_id=f"r{value}")
        seen = [(y["Y"][0, 0], request_id) for y, request_id, _ in client]
        assert seen == [(2.0 * value, f"r{value}") for value in range(20)]
    arrived: list[float] = []
    with StreamClient(server.grpc, "double", callback=lambda y, *_: arrived.append(float(y[0, 0]))) as client:
        for value in range(20):
            client.send(rows(value))
    assert arrived == [2.0 * value for value in range(20)]


def test_a_sequence_keeps_its_state(server: ServerProcess) -> None:
    with StreamClient(server.grpc, "count") as client:
        counts = [client.infer(ONE, None, 7, step == 0, step == 2)[0, 0] for step in range(3)]
        named = [client.infer({"X": ONE}, sequence_id=8, sequence_start=step == 0)["Y"][0, 0] for step in range(2)]
    assert (counts, named) == ([1, 2, 3], [1, 2])


def test_a_decoupled_model_answers_a_request_with_a_list(server: ServerProcess) -> None:
    with StreamClient(server.grpc, "tells") as client:
        assert [int(y[0]) for y in client.infer(np.array([3, 1, 2], np.int32))] == [3, 1, 2]


@pytest.mark.parametrize("version", [1, "1"])
def test_a_version_is_a_number_or_text_under_either_name(server: ServerProcess, version: Any) -> None:
    with (
        StreamClient(server.grpc, "double", version=version) as one,
        StreamClient(server.grpc, "double", model_version=version) as other,
        StreamClient(server.grpc, "double") as latest,
    ):
        assert (one.version, other.version, latest.version) == (1, 1, 3)
        assert repr(one) == f"StreamClient('{server.grpc}', 'double')"


def test_control_calls_say_what_those_of_a_client_say(client: StreamClient, server: ServerProcess) -> None:
    with Client(server.grpc) as plain:
        assert client.live() is client.is_live() is client.is_server_live() is True
        assert client.ready() is client.is_ready("double", 3) is client.is_model_ready() is True
        assert not client.ready("nobody")
        assert client.metadata() == client.get_model_metadata("double") == plain.metadata("double")
        assert client.config() == plain.config("double")
        assert client.metadata("pair") == plain.metadata("pair")
        assert client.signature() == plain.signature("double")
        assert client.server_metadata() == plain.server_metadata()
        assert client.models() == client.list_models() == plain.models()
        assert {line["name"] for line in client.statistics()} == {line["name"] for line in client.stats()}
        client.unload("pair", timeout=60)
        assert not client.ready("pair")
        client.load_model("pair")
        assert client.ready("pair")
        client.load()
        assert client.infer(rows()).tolist() == [[2, 2]]


def test_the_words_of_a_client_take_the_same_arguments() -> None:
    def arguments(kind: type, name: str) -> list[str]:
        return [name for name in inspect.signature(getattr(kind, name)).parameters if name not in {"self", "model"}]

    # Its tensors travel in messages, so there is nothing of shared memory either.
    memory = {"share", *(name for name in dir(Client) if name.endswith(("_shared_memory", "_shared_memory_status")))}
    others = {
        "ask",
        "call",
        "stream",
        "infer",
        "servers",
        *(name for name in dir(Client) if "traffic" in name),
    }  # HTTP alone has it, and a stream has one server
    names = {name for name in dir(Client) if not name.startswith("_")} - others - memory
    assert names <= set(dir(StreamClient))
    for name in names:
        assert arguments(StreamClient, name) == arguments(Client, name)


def test_both_faces_are_of_the_same_stream() -> None:
    assert issubclass(StreamClient, RequestStream)
    assert issubclass(InferenceClient, RequestStream)
    own = {name for name in vars(InferenceClient) if not name.startswith("_")}
    assert own == {"infer", "ask"}


@pytest.mark.parametrize("name", ["timeout", "timeout_s"])
def test_a_request_that_takes_too_long_fails(server: ServerProcess, name: str) -> None:
    with pytest.raises(DeadlineExceeded), StreamClient(server.grpc, "waits", **{name: 0.2}) as client:
        client.infer(np.ones(1, np.int32))
    with pytest.raises(DeadlineExceeded), StreamClient(server.grpc, "waits") as client:
        client.infer(np.ones(1, np.int32), **{name: 0.2})  # type: ignore[call-overload]


def test_a_future_is_awaited(server: ServerProcess) -> None:
    async def ask() -> list[float]:
        with StreamClient(server.grpc, "double") as client:
            futures = [asyncio.wrap_future(client.submit(rows(value))) for value in range(10)]
            return [float(y[0, 0]) for y in await asyncio.gather(*futures)]

    assert asyncio.run(ask()) == [2.0 * value for value in range(10)]


def test_infer_in_a_callback_is_refused(server: ServerProcess) -> None:
    refused = threading.Event()

    def callback(*_: Any) -> None:
        try:
            client.infer(rows())
        except RuntimeError as error:
            assert "which a callback cannot do" in str(error)
            refused.set()

    with StreamClient(server.grpc, "double", callback=callback) as client:
        client.send(rows())
        assert refused.wait(60)


def test_retries_are_what_a_retry_says(server: ServerProcess, notes: Notes) -> None:
    value = np.ones(1, np.int32)
    with Switch(server.grpc) as switch, StreamClient(switch.address, "waits", retry=Retry(times=5)) as client:
        future = client.submit(value)
        switch.lead(None)
        switch.lead(server.grpc)
        notes.write("go")
        assert future.result(60).tolist() == [1]
    notes.remove("go")


def test_answers_that_nobody_reads_are_bounded(server: ServerProcess) -> None:
    with StreamClient(server.grpc, "double", max_unread_bytes=1) as client:
        client.send(rows())
        client.drain()
        with pytest.raises(Overloaded, match="read them with get"):
            client.send(rows())
        assert client.get()[0].tolist() == [[2, 2]]


def test_an_address_that_speaks_something_else_is_explained(
    server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    from alipes.client import wrong_port

    with pytest.raises(TransportError, match=f"the server at {server.http} speaks HTTP"):
        StreamClient(server.http, "double")
    with pytest.raises(ConfigError, match=r"is one of HTTP, where there are no streams; pass the address of its gRPC"):
        StreamClient(f"http://{server.http}", "double")
    distance = int(server.grpc.rpartition(":")[2]) - int(server.http.rpartition(":")[2])
    monkeypatch.setattr(wrong_port, "_STEPS", {("grpc", "http"): distance})
    with pytest.raises(ConfigError, match=f"gRPC is at {server.grpc}: pass '{server.grpc}'"):
        StreamClient(f"http://{server.http}", "double")


def test_a_wrong_argument_is_named(server: ServerProcess) -> None:
    for arguments, options, text in (
        ((8001, "m"), {}, "address: expected text such as 'localhost:8001', or a list of such texts, got 8001 (int)"),
        ((server.grpc, 3), {}, "model: expected the model's name as text, got 3 (int)"),
        ((server.grpc, "m"), {"version": "one"}, "version: expected a number such as 1 or '1', got 'one' (str)"),
        ((server.grpc, "m"), {"retry": 3}, "retry: expected a Retry, such as Retry(times=3), got 3 (int)"),
        ((server.grpc, "m"), {"timeout": "1"}, "timeout: expected seconds as a number, got '1' (str)"),
        ((server.grpc, "m"), {"rate": "1"}, "rate: expected seconds as a number, got '1' (str)"),
        ((server.grpc, "m"), {"headers": "a"}, "headers: expected a dictionary of texts, got 'a' (str)"),
        ((server.grpc, "m"), {"callback": 1}, "callback: expected a function, got 1 (int)"),
    ):
        with pytest.raises(AlipesError) as raised:
            StreamClient(*arguments, **options)
        assert str(raised.value) == text
    with StreamClient(server.grpc, "double") as client:
        for inputs, options, text in (
            (None, {}, "inputs: expected an array, or a dictionary of arrays by input, got None"),
            ("double", {}, "inputs: this client asks 'double' alone, so pass the inputs without the model's name"),
            (rows(), {"timeout": "1"}, "timeout: expected seconds as a number, got '1' (str)"),
            (rows(), {"request_id": 1.5}, "request_id: expected a whole number or text, got 1.5 (float)"),
            (
                rows(),
                {"sequence_id": 1.5},
                "sequence_id: expected a whole number of 64 bits without a sign, or text, got 1.5 (float)",
            ),
            (rows(), {"sequence_start": "yes"}, "sequence_start: expected True or False, got 'yes' (str)"),
        ):
            for ask in (client.infer, client.send, client.submit):
                with pytest.raises(InvalidArgument) as raised:
                    ask(inputs, **options)
                assert str(raised.value) == text


def test_a_model_that_is_not_there_is_answered_with_those_that_are(server: ServerProcess) -> None:
    with pytest.raises(NotFound, match="the server has 'double'"):
        StreamClient(server.grpc, "doubel")


def test_an_array_streamed_by_mistake_is_answered_with_the_right_call(client: StreamClient) -> None:
    for wrong in (np.ones(2, np.float32), np.array(1.0, np.float32)):
        with pytest.raises(InvalidArgument, match=r"; stream\(\) sends each item .* is sent by submit\(\)$"):
            list(client.stream(wrong))
