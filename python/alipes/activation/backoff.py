"""How long to wait before a server that fails is started again."""

from __future__ import annotations

from typing import Final

__all__ = ["Backoff"]

_FIRST_S: Final = 1.0
_LONGEST_S: Final = 60.0


class Backoff:
    """Waits that double from one failure to the next, and begin anew after a success."""

    def __init__(self) -> None:
        """Begins without a failure."""
        self._next_s = _FIRST_S

    def fail(self) -> float:
        """Seconds to wait after a failure."""
        wait_s, self._next_s = self._next_s, min(2 * self._next_s, _LONGEST_S)
        return wait_s

    def succeed(self) -> None:
        """The server has come to accept requests."""
        self._next_s = _FIRST_S
