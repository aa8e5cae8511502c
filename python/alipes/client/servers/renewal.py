"""When the names of a client's servers are looked up again."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from alipes.errors import AlipesError

__all__ = ["RENEW_S", "RENEW_SOON_S", "Renewal"]

_LOG: Final = logging.getLogger("alipes.client")

RENEW_S: Final = 30.0
RENEW_SOON_S: Final = 1.0
"""How often names are looked up again; and how often at most while a server is gone, or a call has tried all."""


class Renewal:
    """Looks names up again, one thread at a time, and not too often."""

    def __init__(self) -> None:
        """Begins with names that were just looked up."""
        self._lock = threading.Lock()
        self._last_s = time.monotonic()

    def after(self, pause_s: float, look_up: Callable[[], None]) -> None:
        """Looks the names up, unless that was done within so many seconds; who comes meanwhile waits for it.

        Args:
            pause_s: The seconds.
            look_up: Looks them up; where it fails, the servers stay as they are.
        """
        with self._lock:
            now_s = time.monotonic()
            if now_s - self._last_s < pause_s:
                return
            self._last_s = now_s
            try:
                look_up()
            except AlipesError as error:
                _LOG.warning("%s: the servers stay as they are", error)
