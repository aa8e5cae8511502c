"""The log of hermes' monitors, for scripts that add handlers to it or let processes of their own write into it.

`logger` is the one that monitors and pipelines of alipes write into, so what is added to it hears them. An import
starts nothing: what processes write goes to the listener's handlers where it is written, or through its queue once a
script has started the listener.
"""

from __future__ import annotations

import atexit
import logging
import multiprocessing
import os
import threading
from logging.handlers import QueueHandler, QueueListener
from typing import Any, Final, Protocol

__all__ = ["LogListener", "listener", "log_q", "logger", "shutdown"]

logger: Final = logging.getLogger("alipes.monitor")
log_q: Final[Any] = multiprocessing.JoinableQueue(-1)


class _Named(Protocol):
    """A process of a pipeline."""

    name: str


class LogListener(QueueListener):
    """Hands what processes say on to handlers, in the process that has started it."""

    _thread: threading.Thread | None

    def start(self) -> None:
        """Starts it, until `stop` or the end of this process."""
        super().start()
        atexit.register(self.end)

    def end(self) -> None:
        """Hands on what is there and ends, where it runs in this process."""
        if self._thread is not None and self._thread.is_alive():
            self.stop()

    def add_process(self, process: _Named) -> logging.Logger:
        """A logger for a process: this one, or the child that it is called in."""
        named = logging.getLogger(f"{logger.name}.{process.name}.{os.getpid()}")
        if not named.handlers:
            handlers = self.handlers if self._thread is None else (QueueHandler(self.queue),)
            for handler in handlers:
                named.addHandler(handler)
        return named


listener: Final = LogListener(log_q, logging.NullHandler(), respect_handler_level=True)


def shutdown() -> None:
    """Ends the listener, where it runs."""
    listener.end()
