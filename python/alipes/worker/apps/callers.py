"""Whether the caller of the request whose arguments are being read still waits.

What reads a large argument looks between two parts of it, so that a caller that has left costs no more time.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextvars import ContextVar

from alipes.errors import Cancelled

__all__ = ["CallersFile", "check_caller", "reading_for"]

_current: ContextVar[Callable[[], bool] | None] = ContextVar("_current", default=None)


class reading_for:
    """What is read within is read for a caller. As a generator it would cost each request twice as much."""

    __slots__ = ("_has_left", "_token")

    def __init__(self, has_left: Callable[[], bool]) -> None:
        """Takes what says whether that caller has left."""
        self._has_left = has_left

    def __enter__(self) -> None:
        """From now on."""
        self._token = _current.set(self._has_left)

    def __exit__(self, *_: object) -> None:
        """Up to now."""
        _current.reset(self._token)


def check_caller() -> None:
    """Ends what is being read for a caller that has left; does nothing where nothing is read for one.

    Raises:
        Cancelled: The caller has left.
    """
    has_left = _current.get()
    if has_left is not None and has_left():
        raise Cancelled("the caller has left")


class CallersFile(io.BytesIO):
    """Bytes that a caller has sent, as a file that readers take in parts; a caller that has left ends the reading."""

    def read(self, size: int | None = -1, /) -> bytes:
        """The next bytes.

        Raises:
            Cancelled: The caller has left.
        """
        check_caller()
        return super().read(size)
