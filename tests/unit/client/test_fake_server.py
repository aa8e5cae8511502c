"""A transport answers a client's calls in the place of a server; `FakeServer` is one made of plain functions."""

from __future__ import annotations

import asyncio
import doctest
import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from alipes.client import AsyncClient, Client, FakeModel, FakeServer, Options, Retry, TransportCall
from alipes.errors import (
    ConfigError,
    Internal,
    InvalidArgument,
    NotFound,
    NotReady,
    Overloaded,
    TransportError,
    Unsupported,
)
from alipes.types import ModelState

Array = np.ndarray[Any, np.dtype[Any]]
SOUND = np.array([1.0, 2.0], np.float32)


def louder(sound: Array) -> Array:
    return sound * 2


def halves(sound: Array, gain: Array = np.ones(1)) -> tuple[Array, Array]:  # noqa: B008 - nobody writes to it
    return sound[:1] * gain, sound[1:] * gain


def words(text: Array) -> dict[str, Any]:
    return {"upper": [word.decode().upper() for word in text], "count": len(text)}


def counts(limit: Array) -> Iterator[Array]:
    for number in range(int(limit)):
        yield np.array([number])


@pytest.fixture
def server() -> FakeServer:
    declared = FakeModel(louder, {"sound": ("FP32", [-1])}, {"louder": ("FP32", [-1])})
    return FakeServer({"louder": louder, "halves": halves, "words": words, "counts": counts, "declared": declared})


@pytest.fixture
def client(server: FakeServer) -> Client:
    return Client(transport=server)


def test_a_function_answers_what_a_model_would(client: Client) -> None:
    assert client.infer("louder", SOUND).tolist() == [2, 4]
    assert client.infer("louder", {"sound": SOUND})["output_0"].tolist() == [2, 4]
    outputs = client.infer("halves", {"sound": SOUND, "gain": [3.0]})
    assert {name: output.tolist() for name, output in outputs.items()} == {"output_0": [3], "output_1": [6]}
    assert client.infer("halves", {"sound": SOUND}, outputs=["output_1"]).keys() == {"output_1"}
    assert client.infer("declared", {"sound": [1, 2]})["louder"].dtype == np.float32


def test_arrays_are_what_they_would_be_behind_a_wire(client: Client) -> None:
    outputs = client.infer("words", {"text": ["one", "zwölf"]})
    assert (outputs["upper"].tolist(), int(outputs["count"])) == ([b"ONE", "ZWÖLF".encode()], 2)
    answer = client.infer("louder", SOUND)
    assert not answer.flags.writeable
    with pytest.raises(KeyError, match="has no output 'lower'; it has 'upper', 'count'"):
        outputs["lower"]


def test_a_function_cannot_change_its_callers_arrays() -> None:
    def changes(sound: Array) -> Array:
        sound[0] = 7
        return sound

    with pytest.raises(Internal, match="ValueError: assignment destination is read-only"):
        Client(transport=FakeServer({"changes": changes})).infer("changes", SOUND)


def test_what_does_not_fit_is_refused_as_by_a_server(client: Client) -> None:
    for inputs, text in (
        ({"noise": SOUND}, "model 'declared' has no input 'noise': its inputs are 'sound'"),
        ({}, "model 'declared' also takes the input 'sound'"),
        ({"sound": SOUND.astype(np.float64)}, "input 'sound' of model 'declared' takes FP32"),
        ({"sound": SOUND[None]}, r"takes the shape \[-1\], the array has \[1,2\]"),
        ({"sound": [[1], [1, 2]]}, "input 'sound' of model 'declared' takes FP32: "),
    ):
        with pytest.raises(InvalidArgument, match=text):
            client.infer("declared", inputs)
    with pytest.raises(InvalidArgument, match="has the inputs 'gain', 'sound': pass a dictionary"):
        client.infer("halves", SOUND)
    with pytest.raises(InvalidArgument, match="input 'sound' of model 'louder' is no array"):
        client.infer("louder", [[1], [1, 2]])
    with pytest.raises(InvalidArgument, match="has no output 'y': its outputs are 'output_0'"):
        client.infer("louder", SOUND, outputs=["y"])
    with pytest.raises(NotFound, match=r"unknown model: 'loud' is not found; the server has 'louder', ") as raised:
        client.infer("loud", SOUND, request_id="r1")
    assert (raised.value.model, raised.value.request_id) == ("loud", "r1")
    with pytest.raises(NotFound, match="'louder' version 2 is not found"):
        client.infer("louder", SOUND, version=2)


def test_each_response_of_a_generator_is_streamed(client: Client) -> None:
    assert [int(response[0]) for response in client.stream("counts", 3)] == [0, 1, 2]
    assert [response["output_0"].tolist() for response in client.stream("counts", {"limit": 2})] == [[0], [1]]
    assert [response.tolist() for response in client.stream("louder", SOUND)] == [[2, 4]]
    assert client.infer("counts", 1).tolist() == [0]
    with pytest.raises(InvalidArgument, match=r"gave 3 responses to one request: ask it with stream\(\)"):
        client.infer("counts", 3)


def test_leaving_a_stream_closes_the_generator() -> None:
    closed: list[bool] = []

    def endless() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.append(True)

    client = Client(transport=FakeServer({"endless": endless}))
    for response in client.stream("endless", {}):
        assert response["output_0"] == 1
        break
    assert closed == [True]


def test_calls_are_awaited_as_those_to_a_server(server: FakeServer) -> None:
    async def ask() -> None:
        async with AsyncClient(transport=server) as client:
            assert (await client.infer("louder", SOUND)).tolist() == [2, 4]
            assert await client.ready("louder")
            assert [int(response[0]) async for response in client.stream("counts", 2)] == [0, 1]
            with pytest.raises(NotFound):
                await client.infer("nobody", SOUND)

    asyncio.run(ask())


def test_control_calls_are_answered(client: Client) -> None:
    assert client.live()
    assert client.ready()
    assert (client.ready("louder", 1), client.ready("louder", 2), client.ready("nobody")) == (True, False, False)
    assert client.server_metadata()["name"] == "alipes fake"
    assert client.metadata("declared")["inputs"] == [{"name": "sound", "datatype": "FP32", "shape": [-1]}]
    assert [one["optional"] for one in client.config("halves")["input"]] == [False, True]
    assert client.signature("declared").required == {"sound"}
    client.infer("louder", SOUND)
    assert client.statistics("louder")[0]["inference_count"] == 1
    assert [entry.name for entry in client.models()] == ["counts", "declared", "halves", "louder", "words"]
    client.unload("louder")
    assert {entry.name: entry.state for entry in client.models()}["louder"] is ModelState.UNAVAILABLE
    with pytest.raises(NotReady, match="'louder' has no available versions"):
        Client(transport=client._transport, retry=Retry(times=0)).infer("louder", SOUND)
    client.load("louder")
    assert client.infer("louder", SOUND).tolist() == [2, 4]
    with pytest.raises(NotFound, match=r"failed to load 'lauder', .*; the server has 'louder', "):
        client.load("lauder")
    with pytest.raises(NotFound, match=r"unknown model: 'lauder' is not found; the server has 'louder', "):
        client.metadata("lauder")
    with pytest.raises(Unsupported, match="a transport has no shared memory"):
        client.share(100)
    with pytest.raises(Unsupported, match="a transport has no shared memory"):
        client.register_cuda_shared_memory("r", bytes(64), 0, 100)
    with pytest.raises(Unsupported, match="a transport has no shared memory"):
        client.get_cuda_shared_memory_status()
    with pytest.raises(Unsupported, match="a transport has no shared memory"):
        client.unregister_cuda_shared_memory()


def test_a_test_sees_what_was_called(server: FakeServer, client: Client) -> None:
    client.ask("louder", SOUND, priority=1, request_id="r1", timeout=5)
    (call,) = server.calls
    assert (call.verb, call.model, call.options) == ("infer", "louder", Options(request_id="r1", priority=1))
    assert isinstance(call.inputs, np.ndarray)
    assert call.timeout_s is not None
    assert 0 < call.timeout_s <= 5
    assert repr(client).startswith("Client(transport=FakeServer(['counts', ")


def test_what_a_function_raises_is_the_error_of_the_request() -> None:
    def fails(x: Array) -> Array:
        raise KeyError("no such note")

    def busy(x: Array) -> Array:
        attempts.append(1)
        if len(attempts) < 3:
            raise Overloaded("busy")
        return x

    attempts: list[int] = []
    server = FakeServer({"fails": fails, "busy": busy})
    client = Client(transport=server, retry=Retry(times=5, first_s=0.0))
    with pytest.raises(Internal, match="KeyError: 'no such note'") as raised:
        client.infer("fails", SOUND)
    assert raised.value.model == "fails"
    assert client.infer("busy", SOUND).tolist() == [1, 2]
    assert len(attempts) == 3


def test_any_function_of_a_call_is_a_transport() -> None:
    def unreachable(call: TransportCall) -> Any:
        raise TransportError(f"nobody is there for {call.verb}")

    client = Client(transport=unreachable, retry=Retry(times=0))
    assert not client.ready()
    with pytest.raises(TransportError, match=r"^nobody is there for infer$"):
        client.infer("m", SOUND)
    assert Client(transport=lambda call: call.inputs).ask("m", SOUND)["output_0"].tolist() == [1, 2]
    with pytest.raises(TransportError, match="cannot be read: it has None"):
        Client(transport=lambda _: None).infer("m", SOUND)


def test_what_is_no_model_or_no_transport_is_named() -> None:
    for wrong, text in (
        (lambda: FakeServer([3]), "models: expected a dictionary of functions by model, got [3] (list)"),  # type: ignore[arg-type]
        (lambda: FakeServer({"m": 3}), "models['m']: expected a function or a FakeModel, got 3 (int)"),  # type: ignore[dict-item]
        (lambda: Client(transport="fake"), "transport: expected a function, or a FakeServer, got 'fake' (str)"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ConfigError) as raised:
            wrong()
        assert str(raised.value) == text


def test_the_example_of_the_docstring_prints_what_it_shows() -> None:
    text = inspect.getdoc(FakeServer) or ""
    names = {"FakeServer": FakeServer, "Client": Client}
    test = doctest.DocTestParser().get_doctest(text, names, "FakeServer", filename=None, lineno=0)
    written: list[str] = []
    assert test.examples
    assert doctest.DocTestRunner(verbose=False).run(test, out=written.append).failed == 0, "".join(written)
