"""Ends a server that no client asks for anything.

The order is what loses no request: first no connection is accepted any more, so that new clients wait in the queue of
the listening socket; then it is seen whether a client came before that; and only then the server ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from alipes.server.log import log
from alipes.server.service_thread import ServiceThread

__all__ = ["IdleWatch"]

_PAUSE_TIMEOUT_S: Final = 5.0
_SHORTEST_SLEEP_S: Final = 0.01


class _DataPlane(Protocol):
    def idle_s(self) -> float: ...

    def pause_accepting(self, deadline_s: float) -> bool: ...

    def resume_accepting(self) -> None: ...


class IdleWatch(ServiceThread):
    """Watches for how long a server has been idle.

    Attributes:
        is_over: Whether it has ended the server: no connection is accepted any more.
    """

    def __init__(self, core: _DataPlane, idle_s: float, when_idle: Callable[[], None]) -> None:
        """Prepares the thread.

        Args:
            core: The data plane.
            idle_s: Seconds without a request after which the server is to end.
            when_idle: Called once, from the thread, when no connection is accepted any more.
        """
        super().__init__("alipes-idle-watch")
        self.is_over = False
        self._core = core
        self._idle_s = idle_s
        self._when_idle = when_idle

    def _run(self) -> None:
        left_s = self._idle_s
        while not self._stopping.wait(max(left_s, _SHORTEST_SLEEP_S)):
            left_s = self._idle_s - self._core.idle_s()
            if left_s <= 0 and self._is_idle():
                self.is_over = True
                self._when_idle()
                return

    def _is_idle(self) -> bool:
        """Whether nobody has come until no connection is accepted any more; else connections are accepted again."""
        if not self._core.pause_accepting(_PAUSE_TIMEOUT_S):
            log.warning("a listener does not pause: the server goes on although it is idle")
            return False
        if self._core.idle_s() >= self._idle_s:
            return True
        self._core.resume_accepting()
        return False
