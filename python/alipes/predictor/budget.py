"""The retry budget of a predictor: how many calls may be made again, whatever happens."""

from __future__ import annotations

import threading
from typing import Final

from alipes.errors import ConfigError

__all__ = ["RetryBudget"]

_MOST_RESERVE: Final = 1_000_000
_ROUNDING: Final = 1e-9
"""Ten tenths are a whole retry."""


class RetryBudget:
    """Bounds the further attempts of all calls together, so that a predictor that fails is not flooded with them.

    After `n` calls there were at most `reserve + share * n` further attempts. Several handles may have one budget, as
    may several threads.

    Examples:
        >>> budget = RetryBudget(share=0.5, reserve=0)
        >>> budget.count_call(), budget.take()
        (None, False)
        >>> budget.count_call(), budget.take()
        (None, True)
    """

    def __init__(self, share: float = 0.1, reserve: int = 10) -> None:
        """Begins with the reserve.

        Args:
            share: Further attempts for each call, from 0 to 1.
            reserve: Further attempts that are free at first, and that calls without a failure bring back.

        Raises:
            ConfigError: If one of them is no such number.
        """
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise ConfigError(f"RetryBudget(share={share!r}) must be a number from 0 to 1", key="share")
        if type(reserve) is not int or not 0 <= reserve <= _MOST_RESERVE:
            raise ConfigError(f"RetryBudget(reserve={reserve!r}) must be an integer from 0 to {_MOST_RESERVE}")
        self._share = float(share)
        self._most = float(max(reserve, 1))
        self._left = float(reserve)
        self._lock = threading.Lock()

    def count_call(self) -> None:
        """Counts a call, which adds its share."""
        with self._lock:
            self._left = min(self._left + self._share, self._most)

    def take(self) -> bool:
        """Takes a further attempt out of the budget; false where nothing is left."""
        with self._lock:
            if self._left < 1 - _ROUNDING:
                return False
            self._left -= 1
            return True
