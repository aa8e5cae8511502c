"""What a worker does from its start to its end."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import Any, Final

from alipes.worker import process
from alipes.worker.failure import describe
from alipes.worker.loading import LoadError, load_class, require_numpy, start_model
from alipes.worker.setup import Setup, read_setup

__all__ = ["complete", "serve"]

# Descriptors that the server hands over; `alipes-link` names the same numbers.
LINK: Final = 3
REQUESTS: Final = 4
SETUP: Final = 5
DOORBELL: Final = 6

# The environment variable with the server's process id.
SERVER_PID: Final = "ALIPES_SERVER_PID"

_ERROR: Final = 0  # level of a log line


def serve() -> int:
    """Runs a worker until the server says stop; returns the exit status."""
    leaving = process.Leaving()
    try:
        process.keep_descriptors(LINK, REQUESTS, DOORBELL)
    except OSError:
        sys.stderr.write("a worker has nothing to do by itself: `alipes serve` starts it, and hands it its link\n")
        return leaving.now(1)
    process.leave_signals()
    process.show_output()
    setup = read_setup(SETUP)
    process.end_with(_server(), f"alipes:{setup.instance.name}")
    from alipes._core import WorkerLink
    from alipes.worker.current import current
    from alipes.worker.executor import Executor
    from alipes.worker.readiness import Readiness
    from alipes.worker.relay import Relay

    link = WorkerLink(LINK, REQUESTS, DOORBELL, setup.declaration())
    current.link = link
    Relay(link).watch()
    try:
        model = _load(setup)
    except LoadError as error:
        link.failed(str(error))
        return leaving.now(1)
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
