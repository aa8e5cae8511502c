"""Waits for a server and for a model with a client whose calls are awaited: tritonclient's, or one of our own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from alipes.compat.pytriton.client.exceptions import PyTritonClientTimeoutError
from alipes.compat.pytriton.client.failures import no_server
from alipes.compat.pytriton.client.states import ModelState, config_of, json_form, state_of
from alipes.compat.pytriton.triton_model_config import TritonModelConfig

__all__ = [
    "AwaitedServer",
    "asyncio_get_model_config",
    "asyncio_get_model_state",
    "asyncio_wait_for_model_ready",
    "asyncio_wait_for_model_status_loaded",
    "asyncio_wait_for_server_ready",
]

_DEFAULT_TIMEOUT_S: Final = 60.0
_PAUSES: Final = 10
"""Pauses in the time of a wait, as in PyTriton, unless they are longer than the longest."""
_LONGEST_PAUSE_S: Final = 0.5


class AwaitedServer(Protocol):
    """A client: the names are those of `tritonclient.http.aio` and `tritonclient.grpc.aio`."""

    def is_server_live(self) -> Awaitable[bool]:
        """Whether the server answers."""

    def is_server_ready(self) -> Awaitable[bool]:
        """Whether the server is ready."""

    def is_model_ready(self, model_name: str, model_version: str, /) -> Awaitable[bool]:
        """Whether a model is ready."""

    def get_model_config(self, model_name: str, model_version: str, /, **form: Any) -> Awaitable[Any]:
        """A model's configuration."""

    def get_model_repository_index(self) -> Awaitable[Any]:
        """The models of the server and their states."""


async def asyncio_get_model_state(
    client: AwaitedServer, model_name: str, model_version: str | None = None
) -> ModelState:
    """The state of a model; UNAVAILABLE where the server has no such model or version.

    Args:
        client: The client.
        model_name: The model.
        model_version: Its version; the highest by default.
    """
    return state_of(await client.get_model_repository_index(), model_name, model_version)


async def asyncio_get_model_config(
    client: AwaitedServer, model_name: str, model_version: str | None = None, timeout_s: float = _DEFAULT_TIMEOUT_S
) -> TritonModelConfig:
    """The configuration of a model, which is waited for.

    Args:
        client: The client.
        model_name: The model.
        model_version: Its version; the latest by default.
        timeout_s: Longest time of it all.

    Raises:
        PyTritonClientTimeoutError: If it is not there in time.
    """
    try:
        async with asyncio.timeout(timeout_s):
            await asyncio_wait_for_model_ready(client, model_name, model_version, timeout_s)
            document = await client.get_model_config(model_name, model_version or "", **json_form(client))
    except TimeoutError as error:
        raise PyTritonClientTimeoutError(
            f"Timeout while waiting for model {model_name} config (timeout={timeout_s:0.2f})"
        ) from error
    return config_of(document)


async def asyncio_wait_for_server_ready(asyncio_client: AwaitedServer, sleep_time_s: float) -> None:
    """Wait for a server, for as long as it takes: `asyncio.timeout` and `asyncio.wait_for` end the wait.

    Args:
        asyncio_client: The client.
        sleep_time_s: Pause between two questions.

    Raises:
        PyTritonClientTimeoutError: If the client itself gives up waiting for an answer.
    """

    async def is_ready() -> bool:
        return await asyncio_client.is_server_ready() and await asyncio_client.is_server_live()

    await _until(is_ready, sleep_time_s, "Timeout while waiting for model")


async def asyncio_wait_for_model_status_loaded(
    asyncio_client: AwaitedServer, model_name: str, sleep_time_s: float, model_version: str | None = None
) -> None:
    """Wait for a model of a server that is ready, for as long as it takes.

    Args:
        asyncio_client: The client.
        model_name: The model.
        sleep_time_s: Pause between two questions.
        model_version: The model's version; the latest by default.

    Raises:
        PyTritonClientTimeoutError: If the client itself gives up waiting for an answer.
    """

    async def is_ready() -> bool:
        return await asyncio_client.is_model_ready(model_name, model_version or "")

    text = f"Timeout while waiting for model {model_name} state (timeout={sleep_time_s:0.2f})"
    await _until(is_ready, sleep_time_s, text)


async def asyncio_wait_for_model_ready(
    asyncio_client: AwaitedServer,
    model_name: str,
    model_version: str | None = None,
    timeout_s: float = _DEFAULT_TIMEOUT_S,
) -> None:
    """Wait for a server, and for a model of it.

    Args:
        asyncio_client: The client.
        model_name: The model.
        model_version: Its version; the latest by default.
        timeout_s: Longest wait.

    Raises:
        PyTritonClientTimeoutError: If they are not ready then.
    """
    pause_s = min(timeout_s / _PAUSES, _LONGEST_PAUSE_S)
    try:
        async with asyncio.timeout(timeout_s):
            await asyncio_wait_for_server_ready(asyncio_client, pause_s)
            await asyncio_wait_for_model_status_loaded(asyncio_client, model_name, pause_s, model_version)
    except TimeoutError as error:
        raise PyTritonClientTimeoutError(
            f"Timeout while waiting for model {model_name} to be ready (timeout={timeout_s:0.2f})"
        ) from error


async def _until(is_ready: Callable[[], Awaitable[bool]], pause_s: float, text: str) -> None:
    """Ask until the answer is yes; no server is no answer. Raises with the text where the client gives up waiting."""
    while True:
        try:
            if await is_ready():
                return
        except TimeoutError as error:
            raise PyTritonClientTimeoutError(text) from error
        except no_server():
            pass
        await asyncio.sleep(pause_s)
