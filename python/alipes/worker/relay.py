"""Calls of processes that a model forks, such as those of a `multiprocessing.Pool`: their worker makes them for them.

Only the worker's own process may use the link: two that write to it would mix their words. So before a fork the worker
opens a socket without a name in the file system, and whoever was forked asks there; a thread of the worker calls and
hands back the answer. Nothing of this exists in a worker whose model does not fork.

A secret that only forked processes have, as a part of the memory that they were given, keeps others out.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from alipes._core import InferenceRequest, InferenceResponse, Tensor, TritonError, TritonModelException
from alipes.worker.current import current

if TYPE_CHECKING:
    import socket
    from multiprocessing.connection import Connection

    from alipes._core import WorkerLink

__all__ = ["Relay", "execute"]

_NO_ANSWER: Final = "The server does not answer calls any more."
_NOT_OPEN: Final = "The worker that this process was forked from could not open a socket for its calls."

# How long a connection may take to show the secret.
_SECRET_WITHIN_S: Final = 5.0
_SECRET_BYTES: Final = 32

# Imported before a fork: in the child an import may find its lock taken for ever.
_NEEDED_LATER: Final = ("hmac", "multiprocessing.connection")

# What a forked process must not do to what it only has a copy of.
_OWNERS_ALONE: Final = ("metric.delete", "metric.forget")


class Relay:
    """Makes the calls of forked processes. The same object, in a forked process, sends them."""

    def __init__(self, link: WorkerLink) -> None:
        """Takes the worker's link; `watch` begins."""
        self._link = link
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self._address = ""
        self._secret = b""
        self._is_serving = False
        # The ends of forked processes, in the worker; in a forked process, its own.
        self._served: set[Connection] = set()
        self._connection: Connection | None = None

    def watch(self) -> None:
        """Has every fork of this process prepared from now on."""
        os.register_at_fork(before=self._open, after_in_parent=self._serve, after_in_child=self._begin_as_child)

    def exchange(self, what: str, *arguments: object) -> Any:
        """Has the worker do something, and waits for the outcome. Only in a forked process.

        Raises:
            TritonModelException: What it raises there, or the worker is gone.
        """
        with self._lock:
            try:
                connection = self._connection or self._connect()
                connection.send((what, arguments))
                refused, outcome = connection.recv()
            except (OSError, EOFError):
                self._hang_up()
                raise TritonModelException(_NO_ANSWER) from None
        if refused:
            raise TritonModelException(outcome)
        return outcome

    def call(self, name: str, question: str) -> str:
        """As `WorkerLink.call`."""
        return "" if name in _OWNERS_ALONE else str(self.exchange("call", name, question))

    def log(self, level: int, file: str, line: int, text: str) -> None:
        """As `WorkerLink.log`."""
        self.exchange("log", level, file, line, text)

    def is_verbose(self) -> bool:
        """As `WorkerLink.is_verbose`."""
        return self._link.is_verbose()

    def _open(self) -> None:
        """Before a fork: the socket, whose address and secret the child gets with the memory."""
        if self._listener is None:
            with self._lock:
                self._listener = self._listener or self._new_listener()

    def _new_listener(self) -> socket.socket:
        import secrets
        import socket
        from importlib import import_module

        for module in _NEEDED_LATER:
            import_module(module)
        self._secret = secrets.token_bytes(_SECRET_BYTES)
        self._address = f"\0alipes-{secrets.token_hex(16)}"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(self._address)
        listener.listen(128)
        return listener

    def _serve(self) -> None:
        """After a fork, in the worker."""
        if self._listener is not None and not self._is_serving:
            self._is_serving = True
            threading.Thread(target=self._accept, args=(self._listener,), name="alipes-relay", daemon=True).start()

    def _begin_as_child(self) -> None:
        """After a fork, in the child: nothing of its parent's is to be used, or kept open."""
        self._lock = threading.Lock()
        self._is_serving = True
        for connection in self._served:
            connection.close()
        self._served.clear()
        self._hang_up()
        if self._listener is not None:
            self._listener.close()
        if current.link is not None:
            current.link = self

    def _connect(self) -> Connection:
        import socket
        from multiprocessing.connection import Connection

        if not self._address:
            raise TritonModelException(_NOT_OPEN)
        end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        end.connect(self._address)
        self._connection = Connection(end.detach())
        self._connection.send_bytes(self._secret)
        return self._connection

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _accept(self, listener: socket.socket) -> None:
        while True:
            end, _ = listener.accept()
            # The secret is waited for elsewhere: a stranger that says nothing holds up nobody.
            threading.Thread(target=self._answer, args=(end,), name="alipes-relay", daemon=True).start()

    def _answer(self, end: socket.socket) -> None:
        """Does what a forked process asks for, until it ends."""
        from multiprocessing.connection import Connection

        with Connection(end.detach()) as connection:
            self._served.add(connection)
            try:
                if not self._knows_secret(connection):
                    return
                while True:
                    what, arguments = connection.recv()
                    connection.send(self._perform(what, arguments))
            except (OSError, EOFError):
                return  # it has ended
            finally:
                self._served.discard(connection)

    def _knows_secret(self, connection: Connection) -> bool:
        import hmac

        shown = connection.recv_bytes(_SECRET_BYTES) if connection.poll(_SECRET_WITHIN_S) else b""
        return hmac.compare_digest(shown, self._secret)

    def _perform(self, what: str, arguments: Sequence[Any]) -> tuple[bool, object]:
        try:
            if what == "execute":
                return False, _packed(_request(*arguments).exec())
            return False, getattr(self._link, what)(*arguments)
        except TritonModelException as error:
            return True, str(error)
        except Exception as error:
            return True, f"{type(error).__name__}: {error}"


def execute(arguments: Mapping[str, Any]) -> InferenceResponse:
    """The response to a call of a forked process, which has the arguments of `InferenceRequest`.

    Raises:
        TritonModelException: What the call raises in the worker, or the worker is gone.
    """
    relay = current.link
    if not isinstance(relay, Relay):
        raise TritonModelException(_NOT_OPEN)
    inputs = [(tensor.name(), tensor.as_numpy()) for tensor in arguments["inputs"]]
    outputs, error, parameters = relay.exchange("execute", {**arguments, "inputs": inputs})
    tensors = [Tensor(name, array) for name, array in outputs]
    return InferenceResponse(tensors, error and TritonError(*error), json.loads(parameters))


def _request(arguments: dict[str, Any]) -> InferenceRequest:
    inputs = [Tensor(name, array) for name, array in arguments["inputs"]]
    return InferenceRequest(**{**arguments, "inputs": inputs, "parameters": json.loads(arguments["parameters"])})


def _packed(response: InferenceResponse) -> tuple[object, ...]:
    error = response.error()
    outputs = [(tensor.name(), tensor.as_numpy()) for tensor in response.output_tensors()]
    return outputs, error and (error.message(), error.code()), response.parameters()
