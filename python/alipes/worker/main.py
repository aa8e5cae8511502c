"""What a worker does from its start to its end."""

from __future__ import annotations

import gc
import os
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from alipes.worker import process
from alipes.worker.failure import describe
from alipes.worker.loading import LoadError, load_class, require_numpy, start_model
from alipes.worker.setup import Setup, read_setup

__all__ = ["complete", "describe_app", "serve"]

# Descriptors that the server hands over; `alipes-link` names the same numbers.
LINK: Final = 3
REQUESTS: Final = 4
SETUP: Final = 5
DOORBELL: Final = 6
INHERITED: Final = (LINK, REQUESTS, SETUP, DOORBELL)

# The environment variable with the server's process id.
SERVER_PID: Final = "ALIPES_SERVER_PID"

MAX_QUESTION_BYTES: Final = 1 << 16
"""Longest question to an app: the paths in it."""

DESCRIBED: Final = b"described"
"""What a process says that has described an app."""

_ERROR: Final = 0  # level of a log line


def serve() -> int:
    """Runs a worker until the server says stop; returns the exit status."""
    leaving = process.Leaving()
    try:
        process.keep_descriptors(LINK, REQUESTS, DOORBELL)
    except OSError:
        sys.stderr.write("a worker has nothing to do by itself: `alipes serve` starts it, and hands it its link\n")
        return leaving.now(1)
    process.show_output()
    return _serve(leaving, INHERITED, _server())


def describe_app(result: int, waiting: int) -> int:
    """Describes an app, and then waits to go on as its worker: what is imported need not be imported again.

    Args:
        result: Descriptor of the file for what it has.
        waiting: Descriptor of the socket to the server. The question comes over it, as `alipes.worker.apps.describe`
            reads it; the server learns over it that the file is written, and hands over what a worker inherits. Its end
            is the end of the wait.

    Returns:
        The exit status.
    """
    leaving = process.Leaving()
    process.show_output()
    server = _server()
    process.end_with(server, "alipes:describe")
    process.keep_descriptors(result, waiting)
    _import_ahead()
    from alipes.worker.apps.describe import describe_into
    from alipes.worker.packet import receive

    with socket.socket(fileno=waiting) as link:
        if not (question := link.recv(MAX_QUESTION_BYTES)):
            return leaving.now(0)
        describe_into(question.decode(), result)
        link.send(DESCRIBED)
        handed = receive(link, len(INHERITED))
    return leaving.now(0) if handed is None else _serve(leaving, handed, server)


def _import_ahead() -> None:
    """Imports what a worker of an app needs, while the server still reads its flags."""
    with suppress(ImportError):  # `require_numpy` says so
        import numpy  # noqa: F401
    from alipes.worker import executor, readiness, relay  # noqa: F401
    from alipes.worker.apps import program  # noqa: F401
    from alipes.worker.triton import install  # noqa: F401


def _serve(leaving: process.Leaving, inherited: Sequence[int], server: int | None) -> int:
    link_memory, requests, setup_file, doorbell = inherited
    process.leave_signals()
    setup = read_setup(setup_file)
    process.end_with(server, f"alipes:{setup.instance.name}")
    from alipes._core import WorkerLink
    from alipes.worker.current import current
    from alipes.worker.executor import Executor
    from alipes.worker.explanations import with_explanations
    from alipes.worker.readiness import Readiness
    from alipes.worker.relay import Relay

    link = WorkerLink(link_memory, requests, doorbell, setup.declaration())
    current.link = link
    Relay(link).watch()
    try:
        model = _load(setup)
    except LoadError as error:
        link.failed(str(error))
        return leaving.now(1)
    model = with_explanations(model, setup)
    executor = Executor(link, model, setup.instance.name, setup.decoupled)
    readiness = Readiness.of(link, model, executor, setup.model_file)
    _settle()
    link.ready(readiness is not None)
    if readiness is not None:
        readiness.start()
    link.serve(executor.execute, executor.describe)
    if readiness is not None:
        readiness.end()
    try:
        executor.finish()
    except BaseException as error:
        link.log(_ERROR, setup.model_file, 0, f"finalize of model '{setup.model_name}' failed: {describe(error)}")
    current.link = None  # deletions from here on need no report: the server forgets all of this worker's
    link.finalized()
    return leaving.now(0)


def complete(request: Path, result: Path) -> int:
    """Asks a model for its configuration, as `alipes.worker.completion` describes; returns the exit status."""
    leaving = process.Leaving()
    process.show_output()
    process.end_with(_server(), "alipes:complete")
    from alipes.worker.completion import answer

    result.write_text(answer(request.read_text(encoding="utf-8")), encoding="utf-8")
    return leaving.now(0)


def _server() -> int | None:
    """Process id of the server, where it was passed. Processes of the model have another parent and must not see it."""
    number = os.environ.pop(SERVER_PID, "")
    return int(number) if number.isdecimal() else None


def _load(setup: Setup) -> Any:
    require_numpy(setup.model_name)
    from alipes.worker.triton.install import install

    install(setup.version_directory)
    if setup.framework is not None:
        from alipes.worker.frameworks.runner import start_runner

        return start_runner(setup.framework, setup.opening())
    file = Path(setup.model_file)
    model_class = load_class(file, Path(setup.version_directory))
    return start_model(model_class, file, setup.arguments())


def _settle() -> None:
    """Takes what imports and `initialize` have made out of the garbage collector's sight.

    It would walk all of it again and again, in the middle of requests. A model that leaves cycles behind, above a heap
    of 800,000 objects: longest pause 0.15 s instead of 0.5 s, and 40 % less time in all (two cores, Python 3.11).
    """
    gc.collect()
    gc.freeze()
