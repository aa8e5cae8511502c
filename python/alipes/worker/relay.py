"""Calls of processes that a model forks, such as those of a `multiprocessing.Pool`: their worker makes them for them.

Only the worker's own process may use the link: two that write to it would mix their words. So before a fork the worker
opens a socket without a name in the file system, and forked processes ask there; a thread of the worker calls and
hands back the answer. Nothing of this exists in a worker whose model does not fork.

Anybody on the machine may connect to such a socket. Processes of other users are turned away, and so is who does not
show the secret, which only forked processes have, as a part of the memory that they were given.
"""

from __future__ import annotations

import json
import os
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
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

# For how long nothing is accepted when the worker has no descriptor or thread left.
_PAUSE_S: Final = 0.05

# Said when an object goes: that may be within another call, wherever the garbage collector runs.
_RELEASES: Final = ("metric.delete", "metric.forget")

# Process, user and group of the other end.
_CREDENTIALS: Final = "=iII"


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
        self._served: set[socket.socket | Connection] = set()
        self._connection: Connection | None = None
        self._releases: deque[tuple[str, str]] = deque()

    def watch(self) -> None:
        """Has every fork of this process prepared from now on."""
        os.register_at_fork(before=self._open, after_in_parent=self._serve, after_in_child=self._begin_as_child)

    def exchange(self, what: str, *arguments: object) -> Any:
        """Has the worker do something, and waits for the outcome. Only in a forked process.

        Raises:
            TritonModelException: What it raises there, or the worker is gone.
        """
        try:
            with self._lock:
                return self._ask(what, arguments)
        finally:
            self._send_releases()

    def call(self, name: str, question: str) -> str:
        """As `WorkerLink.call`. A release is sent later where this thread is within another call."""
        if name not in _RELEASES:
            return str(self.exchange("call", name, question))
        self._releases.append((name, question))
        self._send_releases()
        return ""

    def log(self, level: int, file: str, line: int, text: str) -> None:
        """As `WorkerLink.log`."""
        self.exchange("log", level, file, line, text)

    def is_verbose(self) -> bool:
        """As `WorkerLink.is_verbose`."""
        return self._link.is_verbose()

    def _ask(self, what: str, arguments: tuple[object, ...]) -> Any:
        try:
            connection = self._connection or self._connect()
            connection.send((what, arguments))
            refused, outcome = connection.recv()
        except (OSError, EOFError):
            self._close()
            raise TritonModelException(_NO_ANSWER) from None
        if refused:
            raise TritonModelException(outcome)
        return outcome

    def _send_releases(self) -> None:
        # Who holds the lock comes here once it is free, so that nothing is left.
        while self._releases and self._lock.acquire(blocking=False):
            try:
                with suppress(IndexError, TritonModelException):
                    self._ask("call", self._releases.popleft())
            finally:
                self._lock.release()

    def _open(self) -> None:
        """Before a fork: the socket, whose address and secret the child gets with the memory."""
        if self._listener is None and not self._is_serving:
            with self._lock:
                self._listener = self._listener or self._new_listener()

    def _new_listener(self) -> socket.socket:
        import secrets
        import socket
        from importlib import import_module

        for module in _NEEDED_LATER:
            import_module(module)
        address = f"\0alipes-{secrets.token_hex(16)}"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(address)
        listener.listen(128)
        self._secret, self._address = secrets.token_bytes(_SECRET_BYTES), address
        return listener

    def _serve(self) -> None:
        """After a fork, in the worker."""
        if self._is_serving:
            return  # also in a forked process, whose lock may be held for as long as a call takes
        with self._lock:
            if self._listener is None or self._is_serving:
                return
            try:
                _start(self._accept, self._listener)
            except RuntimeError:
                # Nobody would answer this child; the next fork tries it again.
                self._listener.close()
                self._listener, self._address = None, ""
                raise
            self._is_serving = True

    def _begin_as_child(self) -> None:
        """After a fork, in the child: nothing of its parent's is to be used, or kept open."""
        self._lock = threading.Lock()
        self._is_serving = True
        for end in self._served:
            with suppress(OSError):  # it may stand there twice, as a socket and as a connection
                end.close()
        self._served.clear()
        self._releases.clear()
        self._close()
        if self._listener is not None:
            self._listener.close()
        if current.link is not None:
            current.link = self

    def _connect(self) -> Connection:
        import socket
        from multiprocessing.connection import Connection

        if not self._address:
            raise TritonModelException(_NOT_OPEN)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as end:
            end.settimeout(None)
            end.connect(self._address)
            end.sendall(self._secret)
            self._connection = Connection(end.detach())
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _accept(self, listener: socket.socket) -> None:
        while listener.fileno() >= 0:
            try:
                end, _ = listener.accept()
            except OSError:
                time.sleep(_PAUSE_S)  # no descriptor is left; the process that connects waits
                continue
            self._served.add(end)
            try:
                if _is_same_user(end):
                    # The secret is waited for elsewhere: who says nothing holds up nobody.
                    _start(self._answer, end)
                    continue
            except (OSError, RuntimeError):
                time.sleep(_PAUSE_S)
            self._drop(end)

    def _drop(self, end: socket.socket | Connection) -> None:
        self._served.discard(end)
        end.close()

    def _answer(self, end: socket.socket) -> None:
        """Does what a forked process asks for, until it ends."""
        from multiprocessing.connection import Connection

        try:
            is_known = self._knows_secret(end)
        except OSError:
            is_known = False
        if not is_known:
            self._drop(end)
            return
        # One of the two is in the set at every moment: another thread may fork.
        connection = Connection(end.fileno())
        self._served.add(connection)
        self._served.discard(end)
        end.detach()
        try:
            while True:
                what, arguments = connection.recv()
                connection.send(self._perform(what, arguments))
        except (OSError, EOFError):
            return  # it has ended
        finally:
            self._drop(connection)

    def _knows_secret(self, end: socket.socket) -> bool:
        import hmac

        end.settimeout(_SECRET_WITHIN_S)
        shown = end.recv(_SECRET_BYTES)  # it is sent at once: a part of it is none
        end.settimeout(None)
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


def _start(target: Callable[[socket.socket], None], end: socket.socket) -> None:
    threading.Thread(target=target, args=(end,), name="alipes-relay", daemon=True).start()


def _is_same_user(end: socket.socket) -> bool:
    import socket

    shown = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(_CREDENTIALS))
    _, user, _ = struct.unpack(_CREDENTIALS, shown)
    return bool(user == os.geteuid())


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
