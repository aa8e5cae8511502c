"""A thread of the server that runs one loop from `start` to `stop`."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod

__all__ = ["ServiceThread"]


class ServiceThread(ABC):
    """One daemon thread and the event that ends its loop.

    Attributes:
        _stopping: Set by `stop`; the loop checks it between two iterations.
    """

    def __init__(self, name: str) -> None:
        """Creates the thread without starting it; `name` is shown by debuggers."""
        self._stopping = threading.Event()
        # Daemon: a loop that hangs in a call must not outlive the exit time-out.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Starts the loop."""
        self._thread.start()

    def stop(self, timeout_s: float) -> bool:
        """Ends the loop; true if the thread ended within `timeout_s` seconds, or never started."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    @abstractmethod
    def _run(self) -> None:
        """Loops until `_stopping` is set."""
