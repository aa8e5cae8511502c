"""Waits for the end of versions that are out of service: until their last request has released them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from alipes.server.builder import Loaded
from alipes.server.index import Index
from alipes.server.log import log
from alipes.types import ModelKey

if TYPE_CHECKING:
    from alipes import _core

__all__ = ["Follower"]

# The interval of the log lines about an unloaded version that still has requests.
_STEP_S: Final = 60.0


class Follower:
    """Drains versions that receive no more requests, and updates the index when they end."""

    def __init__(self, index: Index) -> None:
        """Waits for nothing yet.

        Args:
            index: Records the end of each version.
        """
        self._index = index

    def follow(self, key: ModelKey, versions: Iterable[Loaded], ended: Callable[[], None]) -> None:
        """Waits for the last requests of versions, on a separate thread unless they have ended already.

        Args:
            key: The model.
            versions: The versions that are out of service.
            ended: Called after all of them have ended, possibly on that thread.
        """
        left = [loaded.version for loaded in versions if not self._end(key, loaded.version, 0.0)]
        if not left:
            ended()
            return

        def wait() -> None:
            for version in left:
                while not self._end(key, version, _STEP_S):
                    log.info("waiting for requests of '%s' version %d", version.name, version.version)
            ended()

        threading.Thread(target=wait, name="alipes-unload", daemon=True).start()

    def _end(self, key: ModelKey, version: _core.ModelVersion, timeout_s: float) -> bool:
        """Drains a version; true if it has ended, which the index then records."""
        if not version.drain(timeout_s):
            return False
        if self._index.end_unloading(key, version.version):
            log.info("successfully unloaded '%s' version %d", version.name, version.version)
        return True
