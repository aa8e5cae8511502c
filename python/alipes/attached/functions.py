"""Functions and classes of this script, served as they are: their instances are threads of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from alipes.attached.attachment import Attachment
from alipes.attached.model import AttachedModel
from alipes.config.pbtxt import to_pbtxt
from alipes.errors import ServeError
from alipes.leaving import leaving_on_signals
from alipes.repository.app_folder import APP_FILE, app_config
from alipes.serve.instance import Instance
from alipes.serve.server import Server
from alipes.worker.apps.describe import described
from alipes.worker.apps.options import Options, checked, options_of
from alipes.worker.apps.peers import KNOWN
from alipes.worker.apps.served import ServedFunction
from alipes.worker.apps.steps import Step, steps_of
from alipes.worker.current import current

if TYPE_CHECKING:
    from alipes.client import Client

__all__ = ["FunctionServer", "functions_served", "models_of", "serve_until_left"]

_ELSEWHERE: Final = {
    "image": "functions run in this process, and need no image",
    "runtime": "functions run in this process, and need no image",
    "gpus": "functions run in this process: CUDA_VISIBLE_DEVICES says which GPUs it sees",
}
"""Arguments of a server that make no sense for one of functions, and why."""

_OF_PROCESSES: Final = "EXECUTE_TIMEOUT_SECONDS"
"""A parameter that needs a process which can be ended."""

_INSTANCE_GPU: Final = "GPU"

_WORKER: Final = "alipes.worker.main"
"""The module that processes of workers alone import."""


class FunctionServer(Server):
    """A server of functions and classes of this script: a child process, which hands requests to threads of the script.

    As `Server`: it stops at the end of its `with`, by `stop()`, when the object is collected, and with the script.
    """

    def __init__(self, repository: Any, *, wait: bool = True, **options: Any) -> None:
        """Starts the server; it is ready when this returns.

        Args:
            repository: A function or a class, or several in a list.
            wait: As in `Server`; there is nothing to wait for, since functions are here already.
            options: As in `Server`: `name`, `server_args`, `log_file`, `timeout` and flags of `alipes serve`.

        Raises:
            ServeError: If the server cannot be started, or an argument makes no sense here.
            ConfigError: If a function cannot be served; the text says why.
        """
        if _is_worker():
            raise ServeError(
                'a worker of a server imports this file: put what starts a server below `if __name__ == "__main__":`'
            )
        for option in _ELSEWHERE.keys() & options.keys():
            if options.pop(option) not in (None, "apptainer"):
                raise ServeError(f"{option}= cannot be used here: {_ELSEWHERE[option]}")
        self._attachment = Attachment(models_of(functions_of(repository)), **options)
        self._attachment.start()
        self._end = self._attachment.stop  # type: ignore[assignment]  # it ends this server too
        server = self._attachment.server
        Instance.__init__(self, server.name, server._source, server.log_path, announced=(), api_key=server._api_key)

    def client(self, **options: Any) -> Client:
        """A client of this server."""
        return self._attachment.server.client(**options)


class _FunctionModel(AttachedModel):
    """A function as a model; its folder says what the page of the API shows."""

    def __init__(self, step: Step) -> None:
        model = described(step)
        config = app_config(model)
        config.backend = ""
        config.parameters.pop(_OF_PROCESSES, None)
        instances = [_FunctionInstance(step) for _ in range(model["instances"])]
        super().__init__(model["name"], to_pbtxt(config), instances, side_by_side=model["concurrency"])
        self._schema = model["schema"]

    def write(self, repository: Path) -> Path:
        folder = super().write(repository)
        text = json.dumps({"schema": self._schema})
        (folder / str(self.version) / APP_FILE).write_text(text, encoding="utf-8")
        return folder


class _FunctionInstance:
    """One instance of a function or class, which works on a thread of its own."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._served: ServedFunction | None = None

    def initialize(self, args: dict[str, str]) -> None:
        on_gpu = args["model_instance_kind"] == _INSTANCE_GPU
        device = f"cuda:{args['model_instance_device_id']}" if on_gpu else "cpu"
        self._served = ServedFunction(self._step, device)
        link = current.link

        def bind() -> None:
            link.bind()  # type: ignore[union-attr]  # the thread that initializes an instance has its link
            current.bind(link)

        self._served.on_threads(bind)

    def execute(self, requests: list[Any]) -> Any:
        assert self._served is not None, "it is initialized before it executes"
        return self._served.execute(requests)

    def finalize(self) -> None:
        if self._served is not None:
            self._served.finalize()


def models_of(functions: Sequence[Callable[..., Any]]) -> list[AttachedModel]:
    """The models that functions and classes become; those with steps become several.

    Raises:
        ConfigError: If one cannot be served, or two have one name.
    """
    models: list[AttachedModel] = []
    for one in functions:
        options = options_of(one) or checked(Options(name=_name(one)))
        steps = steps_of(one, options)
        KNOWN.update({name: (step.served, step.options) for name, step in steps.items()})
        models += [_FunctionModel(step) for step in steps.values()]
    return models


def functions_of(thing: Any) -> Sequence[Callable[..., Any]]:
    """One function or several, as a list."""
    return thing if isinstance(thing, list | tuple) else [thing]


def serve_until_left(function: Any, **options: Any) -> FunctionServer | None:
    """Serves a function or class until Ctrl-C or SIGTERM; at a prompt or in a notebook, gives the running server.

    Args:
        function: The function or class.
        options: As in `Server`.

    Returns:
        The server, where a person goes on typing; None otherwise, and in a worker of a server, which imports the file
        for its functions alone.
    """
    if _is_worker():
        return None
    if hasattr(sys, "ps1") or sys.flags.interactive:
        return _announced(function, options)
    with suppress(KeyboardInterrupt), leaving_on_signals():  # from its first moment on, a signal leaves nothing behind
        _announced(function, options).run()
    return None


def _announced(function: Any, options: dict[str, Any]) -> FunctionServer:
    """A server that runs, and has printed where."""
    server = FunctionServer(function, **options)
    names = [name for name in server._attachment.models if "." not in name]
    paths = ", ".join(f"{server.url}/{name}" for name in names)
    print(f"serving {paths}; {server.url}/docs tries it out", file=sys.stderr, flush=True)
    return server


@contextmanager
def functions_served(functions: Any, **options: Any) -> Iterator[FunctionServer]:
    """A server of functions for the length of a block."""
    with FunctionServer(functions, **options) as server:
        yield server


def _is_worker() -> bool:
    """Whether this process imports the functions for a server, as `alipes serve app.py` does."""
    return _WORKER in sys.modules


def _name(function: Callable[..., Any]) -> str:
    own = str(getattr(function, "__name__", "model"))
    name = own if own.isidentifier() else "model"
    return name.lower() if isinstance(function, type) else name
