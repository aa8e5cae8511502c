"""`RemoteTriton`: functions of a script behind a server that runs already, on the same machine.

The server loads a stand-in for each model (`alipes.compat.pytriton.stand_in`), which passes requests on to the script.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any, Final, Self

from alipes.compat.pytriton import relay
from alipes.compat.pytriton.base import TritonBase
from alipes.compat.pytriton.client.auth import create_auth_headers
from alipes.compat.pytriton.client.exceptions import PyTritonClientTimeoutError
from alipes.compat.pytriton.client.transport import PlainSyncClient, not_repeated
from alipes.compat.pytriton.client.url import TritonUrl
from alipes.compat.pytriton.client.waiting import wait_for_server_ready
from alipes.compat.pytriton.constants import CREATE_TRITON_CLIENT_TIMEOUT_S, DEFAULT_TRITON_STARTUP_TIMEOUT_S
from alipes.compat.pytriton.exceptions import PyTritonInvalidOperationError
from alipes.compat.pytriton.instance import FunctionCalls
from alipes.compat.pytriton.model import BoundModel
from alipes.compat.pytriton.policy import TritonLifecyclePolicy
from alipes.compat.pytriton.request import Request
from alipes.compat.pytriton.stand_in import ADDRESS_FILE, SOURCE
from alipes.compat.pytriton.workspace import Workspace
from alipes.errors import AlipesError
from alipes.process_folder import ProcessFolder
from alipes.worker.failure import describe, forget

__all__ = ["RemoteTriton"]

_LOG: Final = logging.getLogger("alipes.compat.pytriton")

_LONGEST_PATH: Final = 100
"""Most characters of a socket's path; the system has room for 107."""
_LEAVE_WITHIN_S: Final = 5.0
"""How long a thread that was woken has to end; it waits for nothing else."""


class RemoteTriton(TritonBase):
    """A server that runs already, for the functions of this script. They go with the script, the server stays.

    The server has to run on this machine and load models by name: `alipes serve --model-control-mode explicit`, or the
    `Triton` of another script.
    """

    def __init__(
        self, url: str, workspace: Workspace | str | Path | None = None, access_token: str | None = None
    ) -> None:
        """Connects when its context is entered, or by `connect` and `serve`.

        Args:
            url: Address of the server.
            workspace: A folder for sockets, which the server has to reach; one of its own by default.
            access_token: The token of a server that restricts the loading of models.

        Raises:
            PyTritonClientInvalidUrlError: If the address cannot be read.
        """
        where = TritonUrl.from_url(url)
        super().__init__(where.with_scheme, workspace, TritonLifecyclePolicy(local_model_store=False))
        headers = None if access_token is None else create_auth_headers(access_token, where.scheme)
        limit_s = DEFAULT_TRITON_STARTUP_TIMEOUT_S
        self._client = PlainSyncClient(self._url, timeout_s=limit_s, retry=not_repeated(), headers=headers)
        self._listeners: dict[str, _StandInListener] = {}

    def __enter__(self) -> Self:
        """Connects."""
        super().__enter__()
        return self

    def _open_server(self) -> None:
        try:
            wait_for_server_ready(self._client, DEFAULT_TRITON_STARTUP_TIMEOUT_S)
        except PyTritonClientTimeoutError as error:
            raise TimeoutError("Triton Inference Server is not ready after timeout.") from error

    def _attach(self, model: BoundModel) -> None:
        listener = _StandInListener(self._workspace.path, f"{len(self._listeners)}.sock", model.calls(self._stop_after))
        files = {
            f"{model.model_version}/model.py": SOURCE.encode(),
            f"{model.model_version}/{ADDRESS_FILE}": json.dumps(listener.address).encode(),
        }
        try:
            self._client.load(model.model_name, config=json.dumps(model.document), files=files)
        except BaseException:
            listener.close()
            raise
        self._listeners[model.model_name] = listener

    def _is_reachable(self) -> bool:
        return self._client.is_live(timeout_s=CREATE_TRITON_CLIENT_TIMEOUT_S)

    def _close_server(self) -> None:
        listeners, self._listeners = self._listeners, {}
        for name, listener in listeners.items():
            with suppress(AlipesError):  # the server may have gone before
                self._client.unload(name)
            listener.close()
        self._client.close()


class _StandInListener:
    """Where the stand-ins of one model connect: each is served by a thread, with the function of its instance."""

    def __init__(self, folder: Path, name: str, functions: Sequence[FunctionCalls]) -> None:
        """Begins to listen.

        Args:
            folder: Where the socket is made; in a folder of its own where that has too long a path.
            name: Name of the socket.
            functions: The function of each instance.

        Raises:
            PyTritonInvalidOperationError: If the path of the socket is too long there, too.
        """
        self._own: ProcessFolder | None = None
        if len(str(folder / name)) > _LONGEST_PATH:
            self._own = ProcessFolder("attached")
            folder = self._own.path
        place = folder / name
        if len(str(place)) > _LONGEST_PATH:
            most = _LONGEST_PATH - len(name) - 1
            raise PyTritonInvalidOperationError(
                f"The path {place} is too long for a socket: give a workspace of at most {most} characters"
            )
        key = secrets.token_bytes(32)
        self._functions = functions
        self._listener = Listener(str(place), "AF_UNIX", authkey=key)
        self._connections: set[Connection] = set()
        self._ended = False
        self.address = {"socket": str(place), "key": key.hex()}
        self._thread = threading.Thread(target=self._listen, name="alipes-pytriton-listen", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Let go of the stand-ins that there are, and take no other."""
        self._ended = True
        # A socket that is closed wakes nobody who waits at it: a caller does, who has no key.
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
            caller.connect(self.address["socket"])
        self._thread.join(_LEAVE_WITHIN_S)
        self._listener.close()
        for connection in list(self._connections):
            with suppress(OSError):
                connection.close()
        if self._own is not None:
            self._own.close()

    def _listen(self) -> None:
        while not self._ended:
            try:
                connection = self._listener.accept()
            except (AuthenticationError, EOFError):
                continue  # somebody else, who does not have the key
            except OSError:
                return
            self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), name="alipes-pytriton", daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        loop = asyncio.new_event_loop()
        try:
            number = relay.receive(connection)[0]["instance"]
            calls = self._functions[number % len(self._functions)]
            while True:
                document, inputs = relay.receive(connection)
                unpacked = [
                    calls.request(arrays, one["parameters"], one["wanted"])
                    for arrays, one in zip(inputs, document["requests"], strict=True)
                ]
                for message in _messages(loop, calls, unpacked):
                    relay.send(connection, *message)
        except (EOFError, OSError):
            return  # the stand-in is gone: its model was unloaded, or its server has ended
        except (KeyError, ValueError) as error:
            _LOG.error("a stand-in cannot be understood: %s", error)
        finally:
            self._connections.discard(connection)
            connection.close()
            loop.close()


def _messages(
    loop: asyncio.AbstractEventLoop, calls: FunctionCalls, unpacked: list[Request]
) -> Iterator[tuple[dict[str, Any], Sequence[relay.Arrays]]]:
    """What a function makes of requests, as it comes, as messages to the stand-in."""
    results = calls.results(unpacked)
    try:
        if calls.config.decoupled:
            while (outputs := loop.run_until_complete(anext(results, None))) is not None:
                yield {}, outputs
            yield {"end": True}, ()
        else:
            yield {}, calls.only(loop.run_until_complete(_all(results)))
    except GeneratorExit:
        raise
    except BaseException as error:
        text = describe(error)
        forget(error)
        yield {"error": text}, ()


async def _all(results: AsyncIterator[Any]) -> list[Any]:
    return [one async for one in results]
