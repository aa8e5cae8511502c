"""What a thread of the script does for one instance: all that a worker does, and nothing to the script's process."""

from __future__ import annotations

import os
import sys
from typing import Final

from alipes._core import WorkerLink
from alipes.attached.assignment import Assignment
from alipes.attached.live import LiveInstance
from alipes.worker.current import current
from alipes.worker.executor import Executor
from alipes.worker.failure import describe, forget
from alipes.worker.readiness import Readiness
from alipes.worker.setup import Setup

__all__ = ["open_link", "refuse", "serve"]

_ERROR: Final = 0  # level of a log line

_CAME_BACK: Final = "alipes: a process that was forked by an attached model came back from the model: it ends here\n"


def open_link(assignment: Assignment) -> WorkerLink:
    """The link of an instance. Its descriptors are taken over, or closed.

    Raises:
        OSError: If the system has no room for it, or the memory is not what this release understands.
    """
    declaration = assignment.setup.declaration()
    return WorkerLink(assignment.link, assignment.requests, assignment.doorbell, declaration, assignment.lifeline)


def refuse(link: WorkerLink, text: str) -> None:
    """Says why an instance cannot be served, and lets go of it."""
    try:
        link.failed(text)
    finally:
        link.close()


def serve(link: WorkerLink, setup: Setup, live: LiveInstance) -> None:
    """Serves an instance until the server asks it to leave, or is gone; on the thread that is the instance's."""
    owner = os.getpid()
    _begin(link)
    executor = Executor(link, live, setup.instance.name, setup.decoupled, lambda: _begin(link))
    try:
        if not _initialize(link, setup, live):
            return
        try:
            _serve(link, setup, live, executor)
        finally:
            _leave_if_forked(owner)
            _finish(link, setup, executor)
        link.finalized()
    finally:
        _leave_if_forked(owner)
        current.bind(None)
        link.close()


def _begin(link: WorkerLink) -> None:
    """Has this thread work for the link's instance."""
    link.bind()
    current.bind(link)


def _leave_if_forked(owner: int) -> None:
    """Ends a process that was forked from the one that serves: what follows is its parent's to do."""
    if os.getpid() != owner:
        sys.stderr.write(_CAME_BACK)
        sys.stderr.flush()
        os._exit(1)


def _initialize(link: WorkerLink, setup: Setup, live: LiveInstance) -> bool:
    """Whether the object could be initialized; the server is told why not."""
    try:
        live.initialize(setup.arguments())
    except BaseException as error:
        link.failed(describe(error))
        forget(error)
        return False
    return True


def _serve(link: WorkerLink, setup: Setup, live: LiveInstance, executor: Executor) -> None:
    readiness = Readiness.of(link, live, executor, setup.model_file)
    link.ready(readiness is not None)
    if readiness is not None:
        readiness.start()
    _execute(link, executor)
    if readiness is not None:
        readiness.end()


def _execute(link: WorkerLink, executor: Executor) -> None:
    """Executes until the server asks the worker to leave. Unlike in `WorkerLink.serve`, all frames are of Python.

    A callable that does not return keeps its thread to the end of the interpreter, which may only then end the thread.
    """
    while (requests := link.claim()) is not None:
        try:
            returned = [executor.execute(requests)]
        except BaseException as error:
            del requests
            link.answer_failure(executor.describe(error))
        else:
            del requests
            link.answer(returned)


def _finish(link: WorkerLink, setup: Setup, executor: Executor) -> None:
    """Lets the object finalize."""
    try:
        executor.finish()
    except BaseException as error:
        text = f"finalize of model '{setup.model_name}' failed: {describe(error)}"
        link.log(_ERROR, setup.model_file, 0, text)
