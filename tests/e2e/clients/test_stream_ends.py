"""How the responses to one request end, at clients of a server that a test directs: no end overtakes an error."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import numpy as np
import pytest
from alipes.client import AsyncClient, Client
from alipes.compat.pytriton.client import AsyncioDecoupledModelClient, DecoupledModelClient
from alipes.compat.pytriton.client.exceptions import PyTritonClientError
from alipes.errors import AlipesError
from support.scripted import Script, ScriptedServer, refused, twice
from support.waiting import TIMEOUT_S

ROWS: Final = np.full((1, 1), 2.0, np.float32)

Values: TypeAlias = list[float]
Ask: TypeAlias = Callable[[str, Callable[[], None]], Values]
"""Asks the server at an address, calls a function after each response, and gives all responses."""


def ask_client(address: str, read: Callable[[], None]) -> Values:
    with Client(address, timeout_s=TIMEOUT_S) as client:
        return noted(client.stream("m", ROWS), read)


def ask_async_client(address: str, read: Callable[[], None]) -> Values:
    async def ask() -> Values:
        async with AsyncClient(address, timeout_s=TIMEOUT_S) as client:
            return await noted_async(client.stream("m", ROWS), read)

    return asyncio.run(ask())


def ask_decoupled_client(address: str, read: Callable[[], None]) -> Values:
    with DecoupledModelClient(f"grpc://{address}", "m", inference_timeout_s=TIMEOUT_S) as client:
        return noted((response["y"] for response in client.infer_sample(ROWS)), read)


def ask_async_decoupled_client(address: str, read: Callable[[], None]) -> Values:
    async def ask() -> Values:
        url = f"grpc://{address}"
        async with AsyncioDecoupledModelClient(url, "m", inference_timeout_s=TIMEOUT_S) as client:
            return await noted_async((response["y"] async for response in client.infer_sample(ROWS)), read)

    return asyncio.run(ask())


def noted(responses: Iterator[Any], read: Callable[[], None]) -> Values:
    values = []
    for response in responses:
        values.append(float(np.ravel(response)[0]))
        read()
    return values


async def noted_async(responses: AsyncIterator[Any], read: Callable[[], None]) -> Values:
    values = []
    async for response in responses:
        values.append(float(np.ravel(response)[0]))
        read()
    return values


every_client: Final = pytest.mark.parametrize(
    "ask",
    [ask_client, ask_async_client, ask_decoupled_client, ask_async_decoupled_client],
    ids=["sync", "async", "pytriton", "pytriton-async"],
)


@contextmanager
def serving(script: Script) -> Generator[str]:
    with ScriptedServer(script, decoupled=True) as server:
        yield server.address


def failure(ask: Ask, address: str, read: Callable[[], None] = lambda: None) -> str:
    """The error that the responses end with."""
    with pytest.raises((AlipesError, PyTritonClientError)) as caught:
        ask(address, read)
    return str(caught.value)


@every_client
@pytest.mark.parametrize("mark", [None, False])
def test_an_error_is_raised_that_comes_after_a_response_was_read(ask: Ask, mark: bool | None) -> None:
    was_read = threading.Event()

    def script(requests: Iterator[Any]) -> Iterator[Any]:
        request = next(requests)
        yield twice(request, last=mark)
        assert was_read.wait(TIMEOUT_S)
        yield refused(request, "no memory is left")

    with serving(script) as address:
        assert "no memory is left" in failure(ask, address, was_read.set)
    assert was_read.is_set()


@every_client
@pytest.mark.parametrize("named", [False, True])
def test_an_error_is_raised_that_comes_with_a_response_and_the_end(ask: Ask, named: bool) -> None:
    def script(requests: Iterator[Any]) -> Iterator[Any]:
        request = next(requests)
        yield twice(request)
        yield refused(request, "no memory is left", named=named)

    with serving(script) as address:
        assert "no memory is left" in failure(ask, address)


@every_client
@pytest.mark.parametrize("mark", [None, False])
def test_a_status_that_ends_the_stream_after_a_response_is_raised(ask: Ask, mark: bool | None) -> None:
    was_read = threading.Event()

    def script(requests: Iterator[Any]) -> Iterator[Any]:
        yield twice(next(requests), last=mark)
        assert was_read.wait(TIMEOUT_S)
        raise BrokenPipeError

    with serving(script) as address:
        assert "the server goes down" in failure(ask, address, was_read.set)


@every_client
@pytest.mark.parametrize("marks", [[], [False], [None, False]])
def test_a_stream_that_ends_before_the_final_response_is_an_error(ask: Ask, marks: list[bool | None]) -> None:
    def script(requests: Iterator[Any]) -> Iterator[Any]:
        request = next(requests)
        for mark in marks:
            yield twice(request, last=mark)

    with serving(script) as address:
        assert "ended the stream before the last response" in failure(ask, address)


@every_client
@pytest.mark.parametrize("marks", [[None, None], [False, True], [True]])
def test_all_responses_are_read_up_to_the_last_one(ask: Ask, marks: list[bool | None]) -> None:
    """A server that never says which response is the last one says it with the end of the stream."""

    def script(requests: Iterator[Any]) -> Iterator[Any]:
        request = next(requests)
        for mark in marks:
            yield twice(request, last=mark)

    with serving(script) as address:
        assert ask(address, lambda: None) == [4.0] * len(marks)
