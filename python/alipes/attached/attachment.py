"""`Attachment`: a server that runs as a child of this script, and the models that the script attaches to it."""

from __future__ import annotations

import os
import shutil
import threading
import weakref
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from alipes.attached.child import ChildServer
from alipes.attached.model import AttachedModel
from alipes.attached.reception import Reception
from alipes.errors import AlreadyExists, NotFound, ServeError
from alipes.process_folder import ProcessFolder

if TYPE_CHECKING:
    from alipes.client import Client
    from alipes.serve import Server

__all__ = ["Attachment"]

_LEAVE_WITHIN_S: Final = 5.0
"""How long threads may take to notice that their server is gone. One that still executes is left to itself."""

_FINALIZE_WITHIN_S: Final = 30.0
"""How long `remove` waits for `finalize`; the server waits as long."""

_LOOK_S: Final = 0.5
"""How often a wait without end looks for signals: Python handles them between two looks."""


class Attachment:
    """A server for models whose instances are objects of this script.

    It runs from `start`, or from the beginning of a `with`, until `stop`, the end of the `with`, or that of the script,
    however that comes about. Ctrl-C reaches the script alone: where the `with` ends by it, requests that are being
    executed are answered first. A forked process has the object, and neither serves nor stops anything by it.
    """

    def __init__(self, models: Iterable[AttachedModel] = (), **server: Any) -> None:
        """Starts nothing yet.

        Args:
            models: What to attach.
            server: As in `alipes.Server`: `name`, `log_file`, `timeout`, `server_args`, and flags of `alipes serve`,
                such as `http_port=0`. Models are loaded by name always, and by this script alone, unless `guard=` says
                otherwise.

        Raises:
            AlreadyExists: If two models have one name.
        """
        self._models: dict[str, AttachedModel] = {}
        self._options = server
        self._changing = threading.Lock()
        self._server: ChildServer | None = None
        self._reception: Reception | None = None
        self._repository = Path()
        self._end: Callable[[], object] = _nothing
        for model in models:
            self._know(model)

    def __enter__(self) -> Self:
        """Starts the server, and attaches the models."""
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops it."""
        self.stop()

    def start(self) -> Self:
        """Starts the server and attaches the models; returns when all of them can answer.

        Raises:
            ServeError: If the server cannot be started, or runs already.
            InferError: If a model cannot be loaded; the server is stopped then.
        """
        if self.is_running:
            raise ServeError("the server of this attachment runs already")
        self.stop()
        with ExitStack() as stack:
            folder = ProcessFolder("attached")
            _on_exit(stack, folder.close)
            self._repository = folder.path / "models"
            self._repository.mkdir()
            self._reception = Reception(self._models)
            _on_exit(stack, self._reception.end)
            self._reception.start()
            _on_exit(stack, self._reception.wait_until_left, None, _LEAVE_WITHIN_S)
            self._server = ChildServer(self._repository, self._reception.descriptor, **self._options)
            _on_exit(stack, self._server.stop)
            for model in tuple(self._models.values()):
                self._attach(model)
            # Holds nothing of this object: it runs when the object is collected, and at the end of the interpreter.
            self._end = weakref.finalize(self, stack.pop_all().close)
        return self

    def stop(self) -> None:
        """Ends the server, which answers what it has, and then the instances' threads. A second time does nothing."""
        self._end()
        self._end = _nothing
        self._server = self._reception = None

    def add(self, model: AttachedModel) -> None:
        """Attaches a model; returns when it can answer. Before the start it is remembered.

        Raises:
            AlreadyExists: If a model of that name is attached.
            InferError: If it cannot be loaded; nothing of it stays then.
        """
        with self._changing:
            self._know(model)
            if not self.is_running:
                return
            try:
                self._attach(model)
            except BaseException:
                self._forget(model)
                raise

    def remove(self, name: str) -> None:
        """Lets go of a model: what it has is answered, and its instances are finalized.

        Raises:
            NotFound: If no model of that name is attached.
        """
        with self._changing:
            model = self._models.get(name)
            if model is None:
                attached = ", ".join(self._models) or "none"
                raise NotFound(f"no model '{name}' is attached; attached: {attached}", model=name)
            if self.is_running and self._reception is not None:
                self.server.unload(name)
                self._reception.wait_until_left(name, _FINALIZE_WITHIN_S)
            self._forget(model)

    def load(self, name: str) -> None:
        """Loads an attached model again after `unload`: its instances are initialized anew.

        Raises:
            InferError: If there is no such model, or it cannot be loaded.
        """
        self.server.load(name)

    def unload(self, name: str) -> None:
        """Unloads a model: what it has is answered, and its instances are finalized. It stays attached."""
        self.server.unload(name)

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for the end of the server.

        Args:
            timeout: Longest wait in seconds; `None` waits without end, or until Ctrl-C.

        Returns:
            Whether the server has ended.

        Raises:
            ServeError: If it does not run.
        """
        server = self._running()
        if timeout is not None:
            return server.wait_for_end(timeout)
        while not server.wait_for_end(_LOOK_S):
            pass
        return True

    @property
    def is_running(self) -> bool:
        """Whether the server runs."""
        return self._server is not None and not self._server.wait_for_end(0)

    @property
    def server(self) -> Server:
        """The server, with its addresses, its log and its verbs.

        Raises:
            ServeError: If it does not run.
        """
        return self._running()

    @property
    def url(self) -> str:
        """The address of its HTTP endpoint, `http://127.0.0.1:8000`."""
        return self.server.url

    @property
    def grpc_url(self) -> str:
        """The address of its gRPC endpoint, `grpc://127.0.0.1:8001`."""
        return self.server.grpc_url

    @property
    def models(self) -> list[str]:
        """Names of the attached models, in the order in which they were added."""
        return list(self._models)

    def client(self, **options: Any) -> Client:
        """A client of the server, as `alipes.Server.client` gives it."""
        return self.server.client(**options)

    def _running(self) -> ChildServer:
        if self._server is None:
            raise ServeError("the server of this attachment does not run: call start(), or use it in a `with`")
        return self._server

    def _know(self, model: AttachedModel) -> None:
        if model.name in self._models:
            raise AlreadyExists(f"a model '{model.name}' is attached already: remove it first", model=model.name)
        self._models[model.name] = model

    def _attach(self, model: AttachedModel) -> None:
        model.write(self._repository)
        self.server.load(model.name)

    def _forget(self, model: AttachedModel) -> None:
        del self._models[model.name]
        shutil.rmtree(self._repository / model.name, ignore_errors=True)


def _on_exit(stack: ExitStack, call: Callable[..., object], *arguments: object) -> None:
    """Has something done at the end, though not by a process that was forked meanwhile."""
    owner = os.getpid()
    stack.callback(lambda: call(*arguments) if os.getpid() == owner else None)


def _nothing() -> None:
    pass
