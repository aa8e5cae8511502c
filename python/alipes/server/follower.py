"""Follows versions that are out of service to their end: until the last request has let go of them."""

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

# The longest wait for the requests of an unloaded version before it is told and asked for again.
_STEP_S: Final = 60.0


class Follower:
    """Waits for versions nobody is sent to any more, and keeps the index true meanwhile."""

    def __init__(self, index: Index) -> None:
        """Follows nothing yet.

        Args:
            index: Is told when a version has ended.
        """
        self._index = index

    def follow(self, key: ModelKey, versions: Iterable[Loaded], ended: Callable[[], None]) -> None:
        """Waits for the last requests of versions, on a thread of its own where they take time.

        Args:
            key: The model.
            versions: What is out of service.
            ended: Called once all of them have ended, perhaps on that thread.
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
        """Whether a version has ended, which the index is told then."""
        if not version.drain(timeout_s):
            return False
        if self._index.end_unloading(key, version.version):
            log.info("successfully unloaded '%s' version %d", version.name, version.version)
        return True
