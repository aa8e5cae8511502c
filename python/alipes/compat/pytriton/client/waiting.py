"""Waits for a server and for a model, and reads the model's configuration then."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from alipes.client.plain.base import PlainClient
from alipes.compat.pytriton.client.exceptions import (
    PyTritonClientInferenceServerError,
    PyTritonClientModelUnavailableError,
    PyTritonClientTimeoutError,
)
from alipes.compat.pytriton.client.failures import no_server
from alipes.compat.pytriton.client.states import config_of, json_form
from alipes.compat.pytriton.client.transport import PlainAsyncClient, PlainSyncClient, not_repeated
from alipes.compat.pytriton.client.url import TritonUrl
from alipes.compat.pytriton.parser import ModelConfigParser
from alipes.compat.pytriton.triton_model_config import TritonModelConfig
from alipes.errors import AlipesError, NotFound

__all__ = [
    "DEFAULT_NETWORK_TIMEOUT_S",
    "DEFAULT_WAIT_FOR_MODEL_TIMEOUT_S",
    "LATEST_MODEL_VERSION",
    "await_config",
    "await_model",
    "create_client_from_url",
    "get_model_config",
    "wait_for_model_ready",
    "wait_for_server_ready",
]

LATEST_MODEL_VERSION: Final = "<latest>"
DEFAULT_NETWORK_TIMEOUT_S: Final = 60.0
DEFAULT_WAIT_FOR_MODEL_TIMEOUT_S: Final = 300.0
_DEFAULT_WAIT_FOR_SERVER_READY_TIMEOUT_S: Final = 60.0


class _Wait:
    """The time of a wait, and the pauses in it: short at first, for most servers are ready."""

    _LONGEST_PAUSE_S: Final = 0.5

    def __init__(self, limit_s: float) -> None:
        """Begins."""
        self._end_s = time.monotonic() + limit_s
        self._pause_s = 0.01

    def left_s(self) -> float:
        """The time that is left; none is given for an answer that is on its way."""
        return max(self._end_s - time.monotonic(), 0.0)

    def probe_s(self) -> float:
        """The longest wait for one answer of the server."""
        return max(self.left_s(), 0.05)

    def pause_s(self) -> float | None:
        """The next pause; None where the time is up."""
        left_s = self.left_s()
        if not left_s:
            return None
        self._pause_s = min(2 * self._pause_s, self._LONGEST_PAUSE_S)
        return min(self._pause_s, left_s)


def create_client_from_url(url: str, network_timeout_s: float | None = None) -> PlainSyncClient:
    """A client of ours for an address; it has the names of `tritonclient` as well.

    Raises:
        PyTritonClientInvalidUrlError: If the address cannot be read.
    """
    where = TritonUrl.from_url(url).with_scheme
    limit_s = DEFAULT_NETWORK_TIMEOUT_S if network_timeout_s is None else network_timeout_s
    return PlainSyncClient(where, timeout_s=limit_s, retry=not_repeated())


def wait_for_server_ready(client: Any, timeout_s: float | None = None) -> None:
    """Wait for a server.

    Args:
        client: A client of `create_client_from_url`, or one of tritonclient.
        timeout_s: Longest wait; a minute by default.

    Raises:
        PyTritonClientTimeoutError: If the server is not ready then.
    """
    wait = _Wait(_DEFAULT_WAIT_FOR_SERVER_READY_TIMEOUT_S if timeout_s is None else timeout_s)
    while not _answers_yes(client, "is_server_ready", wait):
        if (pause_s := wait.pause_s()) is None:
            raise PyTritonClientTimeoutError("Waiting for server to be ready timed out.")
        time.sleep(pause_s)


def wait_for_model_ready(
    client: Any, model_name: str, model_version: str | None = None, timeout_s: float | None = None
) -> None:
    """Wait for a server, and for a model of it.

    Args:
        client: A client of `create_client_from_url`, or one of tritonclient.
        model_name: The model.
        model_version: Its version; the latest by default.
        timeout_s: Longest wait; five minutes by default.

    Raises:
        PyTritonClientTimeoutError: If they are not ready then.
    """
    wait = _Wait(DEFAULT_WAIT_FOR_MODEL_TIMEOUT_S if timeout_s is None else timeout_s)
    wait_for_server_ready(client, wait.left_s())
    while not _answers_yes(client, "is_model_ready", wait, model_name, model_version or ""):
        if (pause_s := wait.pause_s()) is None:
            shown = f"{model_name}/{model_version or LATEST_MODEL_VERSION}"
            raise PyTritonClientTimeoutError(f"Waiting for model {shown} to be ready timed out.")
        time.sleep(pause_s)


def get_model_config(
    client: Any, model_name: str, model_version: str | None = None, timeout_s: float | None = None
) -> TritonModelConfig:
    """The configuration of a model, which is waited for.

    Raises:
        PyTritonClientTimeoutError: If it is not ready in time.
        PyTritonClientModelUnavailableError: If it went meanwhile.
        PyTritonClientInferenceServerError: If the server refuses to show it.
    """
    wait_for_model_ready(client, model_name, model_version, timeout_s)
    try:
        return config_of(client.get_model_config(model_name, model_version or "", **json_form(client)))
    except AlipesError as error:
        raise _unread(error) from error


async def await_model(client: PlainAsyncClient, model_name: str, model_version: str | None, timeout_s: float) -> None:
    """Wait for a server, and for a model of it.

    Raises:
        PyTritonClientTimeoutError: If they are not ready in time.
    """
    wait = _Wait(timeout_s)
    while not (
        await client.is_ready(timeout_s=wait.probe_s())
        and await client.is_model_ready(model_name, model_version, timeout_s=wait.probe_s())
    ):
        if (pause_s := wait.pause_s()) is None:
            raise PyTritonClientTimeoutError(
                f"Timeout while waiting for model {model_name} to be ready for {timeout_s}s"
            )
        await asyncio.sleep(pause_s)


async def await_config(
    client: PlainAsyncClient, model_name: str, model_version: str | None, timeout_s: float
) -> TritonModelConfig:
    """The configuration of a model, which is waited for; the same errors as `get_model_config`."""
    await await_model(client, model_name, model_version, timeout_s)
    try:
        return ModelConfigParser.from_dict(await client.config(model_name, model_version))
    except AlipesError as error:
        raise _unread(error) from error


def _answers_yes(client: Any, question: str, wait: _Wait, *arguments: str) -> bool:
    """Whether a server answers yes; no server is a no. A client of tritonclient waits as long as it was made to."""
    ask = getattr(client, question)
    if isinstance(client, PlainClient):  # which answers no itself, within a limit
        return bool(ask(*arguments, timeout_s=wait.probe_s()))
    try:
        return bool(ask(*arguments))
    except no_server():
        return False


def _unread(error: Any) -> Exception:
    if isinstance(error, NotFound):
        return PyTritonClientModelUnavailableError(str(error))
    return PyTritonClientInferenceServerError(f"The model's configuration cannot be read. Message: {error}")
