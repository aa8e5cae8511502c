"""`Server(repository)`: a server process that runs for as long as this object is used."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Any, Final, Self

from alipes.leaving import leaving_on_signals
from alipes.serve.arguments import check
from alipes.serve.context import announced, recipe, supervised
from alipes.serve.endpoints import flag_words
from alipes.serve.flags import FlagValue, keyword_words
from alipes.serve.folder import are_functions
from alipes.serve.instance import Instance
from alipes.serve.recipe import Recipe, Runtime
from alipes.serve.server_key import key_among
from alipes.serve.supervisor import Inherited

__all__ = ["Server"]

_LOOK_S: Final = 1.0
"""Seconds between two looks of a wait without end, which a signal ends at once."""


class Server(Instance):
    """A server in a process of its own. It runs from here on, and every model can answer.

    It stops at the end of its `with`, by `stop()`, when the object is collected, and when the script ends, however it
    does. A forked process has the object and does not stop the server.

        from alipes import Server

        with Server("models", port=9000) as server:
            print(server.url, [model.name for model in server.models()])
            with server.client() as client:
                print(client.infer("louder", [[1.0, 2.0, 3.0]]))

    As the whole of a script, until Ctrl-C: `Server("models").run()`. Without `with`, and with models that are loaded by
    name:

        server = Server("models", model_control_mode="explicit")
        server.load("louder")
        server.stop()

    A function or a class of this script, or a list of them, is served too: `Server(louder)`. They run on threads of the
    script.

    Attributes:
        name: Its name.
        log_path: The file with what it wrote.
    """

    def __new__(cls, repository: Any = None, *further: Any, **_: Any) -> Server:
        """A server of functions, where that is what is served."""
        if cls is Server and further:
            raise TypeError("Server() takes one thing to serve; several functions are a list: Server([first, second])")
        if cls is Server and are_functions(repository):
            from alipes.attached.functions import FunctionServer  # most scripts serve folders

            return object.__new__(FunctionServer)
        return object.__new__(cls)

    def __init__(  # noqa: PLR0913  # what `serve` takes, and flags
        self,
        repository: str | os.PathLike[str] | Callable[..., Any] | Sequence[Callable[..., Any]],
        *,
        image: str | os.PathLike[str] | None = None,
        name: str | None = None,
        gpus: int | Sequence[int] | None = None,
        server_args: Sequence[str] | str | None = None,
        log_file: str | os.PathLike[str] | None = None,
        runtime: Runtime = "apptainer",
        wait: bool = True,
        timeout: float | None = None,
        **flags: FlagValue,
    ) -> None:
        """Starts the process and waits until it is ready.

        Args:
            repository: The folder that holds the models' folders, or the address of a bucket; an app, `"app.py"`; or a
                function or a class of this script, or several in a list.
            image: A container image with Triton; `None` runs our own server.
            name: Name of the server.
            gpus: GPUs that the server may see.
            server_args: Flags as words of a command line.
            log_file: Where the server's output goes; without, it goes with the server, and `log` has its last lines.
            runtime: What runs the image: `apptainer`, `docker`, `podman`.
            wait: False returns while models are still loading; `wait_until_ready()` waits for them.
            timeout: Longest wait in seconds; `None` waits without end.
            flags: Flags of `alipes serve` with `_` for `-`: `http_port=0`, `model_control_mode="explicit"`,
                `log_verbose=1`, `load_model=["a", "b"]`. `port` is that of HTTP, followed by those of gRPC and metrics;
                `port=0` takes three free ones. Without a port, 8000 to 8002 are taken, or free ones if they are in
                use. `host` is the address of all three; by default other machines reach the server, and
                `host="127.0.0.1"` keeps it to this one.

        Raises:
            ServeError: If there is no such folder or flag, or the server cannot be started or ends, with the reason
                from its log. Nothing is left of the server then.
            ServeTimeout: If the time is up; likewise.
        """
        check(log_file=log_file, timeout=timeout)
        words = [*flag_words(server_args), *keyword_words(flags)]
        self._begin(recipe(repository, image, name, gpus, words, runtime), log_file, timeout, wait=wait)

    def _begin(
        self,
        plan: Recipe,
        log_file: str | os.PathLike[str] | None,
        timeout: float | None,
        *,
        wait: bool,
        inherited: Inherited | None = None,
    ) -> None:
        with ExitStack() as stack:
            supervisor, log = stack.enter_context(supervised(plan, log_file, inherited))
            Instance.__init__(
                self, plan.name, supervisor, log, announced=announced(plan), api_key=key_among(plan.flags)
            )
            if wait:
                self.wait_until_ready(timeout)
            # Holds nothing of this object: it runs when the object is collected, and at the end of the interpreter.
            self._end = weakref.finalize(self, stack.pop_all().close)

    def __enter__(self) -> Self:
        """The server, which runs already."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops it."""
        self.stop()

    def run(self) -> None:
        """Serves until Ctrl-C, SIGTERM or the server's own end. Nothing of the server is left then."""
        with suppress(KeyboardInterrupt), leaving_on_signals(), self:
            while not self._source.wait_for_end(_LOOK_S):
                pass

    def stop(self) -> None:
        """Ends the server, after what it is doing. A second time does nothing."""
        self._end()

    def close(self) -> None:
        """The same as `stop`."""
        self.stop()
