"""What a thread of the script does for one instance: all that a worker does, and nothing to the script's process."""

from __future__ import annotations

from typing import Final

from alipes._core import WorkerLink
from alipes.attached.handover import Handover
from alipes.attached.live import LiveInstance
from alipes.worker.current import current
from alipes.worker.executor import Executor
from alipes.worker.failure import describe, forget
from alipes.worker.readiness import Readiness
from alipes.worker.setup import Setup

__all__ = ["open_link", "refuse", "serve"]

_ERROR: Final = 0  # level of a log line


def open_link(handover: Handover) -> WorkerLink:
    """The link of an instance. Its descriptors are taken over, or closed.

    Raises:
        OSError: If the system has no room for it, or the memory is not what this release understands.
    """
    declaration = handover.setup.declaration()
    return WorkerLink(handover.link, handover.requests, handover.doorbell, declaration, handover.lifeline)


def refuse(link: WorkerLink, text: str) -> None:
    """Says why an instance cannot be served, and lets go of it."""
    try:
        link.failed(text)
    finally:
        link.close()


def serve(link: WorkerLink, setup: Setup, live: LiveInstance) -> None:
    """Serves an instance until the server asks it to leave, or is gone; on the thread that is the instance's."""
    _begin(link)
    try:
        try:
            live.initialize(setup.arguments())
        except BaseException as error:
            link.failed(describe(error))
            forget(error)
            return
        _serve(link, setup, live)
        link.finalized()
    finally:
        current.bind(None)
        link.close()


def _begin(link: WorkerLink) -> None:
    """Has this thread work for the link's instance."""
    link.bind()
    current.bind(link)


def _serve(link: WorkerLink, setup: Setup, live: LiveInstance) -> None:
    executor = Executor(link, live, setup.instance.name, setup.decoupled, lambda: _begin(link))
    try:
        readiness = Readiness.of(link, live, executor, setup.model_file)
        link.ready(readiness is not None)
        if readiness is not None:
            readiness.start()
        link.serve(executor.execute, executor.describe)
        if readiness is not None:
            readiness.end()
    finally:
        try:
            executor.finish()
        except BaseException as error:
            text = f"finalize of model '{setup.model_name}' failed: {describe(error)}"
            link.log(_ERROR, setup.model_file, 0, text)
