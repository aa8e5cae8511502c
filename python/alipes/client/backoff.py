"""What both kinds of client agree on for retries: which errors are temporary, and how pauses grow."""

from __future__ import annotations

from typing import Final

from alipes.errors import NotReady, Overloaded

__all__ = ["NOT_BEGUN", "doubled_s"]

NOT_BEGUN: Final = (NotReady, Overloaded)
"""Errors of a server that has not begun to execute the request, and may do so later."""

_MAX_DOUBLINGS: Final = 32


def doubled_s(first_s: float, most_s: float, attempt: int) -> float:
    """The pause before a further attempt, counted from 0: doubles each time, at most `most_s`."""
    return min(most_s, first_s * 2.0 ** min(attempt, _MAX_DOUBLINGS))
