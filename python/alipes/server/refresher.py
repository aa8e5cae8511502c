"""Looks for model folders that came or went, so that the index names them soon.

On a thread of its own: a look at a disk or a bucket that does not answer must hold up no request.
"""

from __future__ import annotations

from typing import Final

from alipes.server.lifecycle import Lifecycle
from alipes.server.log import log
from alipes.server.service_thread import ServiceThread

__all__ = ["Refresher"]

# How late a new model folder may show in the index.
INTERVAL_S: Final = 1.0


class Refresher(ServiceThread):
    """Refreshes the index until it is stopped."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        """Prepares the thread."""
        super().__init__("alipes-index")
        self._lifecycle = lifecycle

    def _run(self) -> None:
        while not self._stopping.wait(INTERVAL_S):
            try:
                self._lifecycle.refresh()
            except Exception:  # what is loaded goes on serving, and the next look may succeed
                log.exception("the repositories cannot be looked at")
