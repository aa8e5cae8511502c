"""Waiting for facts that nothing announces."""

from __future__ import annotations

import time
from collections.abc import Callable

# Longest wait for anything that a healthy server does soon. It ends a test that hangs, and judges no speed: on a loaded
# machine with a cold disk six processes that import scikit-learn at once took a minute.
TIMEOUT_S = 240.0


def until(fact: Callable[[], object], what: str = "", timeout_s: float = TIMEOUT_S) -> None:
    """Returns once the fact holds.

    Raises:
        AssertionError: If it does not in time.
    """
    deadline = time.monotonic() + timeout_s
    while not fact():
        assert time.monotonic() < deadline, what or "it did not happen in time"
        time.sleep(0.005)
