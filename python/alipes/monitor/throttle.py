"""Turns at a steady rate."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from alipes.errors import MonitorError

__all__ = ["Throttle"]


class Throttle:
    """Gives a turn when it is time for one: `for _ in Throttle(rate)`, or `throttle()` in a `with` block.

    Turns are counted from the first one, so that the rate is the wished one however long a turn takes to use. A caller
    that falls behind catches up on at most `update_every` turns: those missed longer ago are dropped.
    """

    def __init__(
        self,
        target_rate: float,
        alpha: float = 0.9,
        condition: Callable[[], bool] | None = None,
        update_every: int = 100,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Starts with the first turn.

        Args:
            target_rate: Turns a second.
            alpha: Weight of what was before in `rate`.
            condition: Ends the turns once it holds.
            update_every: Turns between two looks at `rate`, and how many may be caught up.
            clock: Tells the time in seconds.
            sleep: Waits for some seconds.

        Raises:
            MonitorError: If the rate is not positive.
        """
        if not target_rate > 0:
            raise MonitorError(f"target_rate is {target_rate}: expected more than 0 turns a second")
        self.target_rate = target_rate
        self.rate: float | None = None
        self._alpha = alpha
        self._condition = condition
        self._update_every = update_every
        self._clock = clock
        self._sleep = sleep
        self._turns = 0
        self._due = 0.0
        self._looked = 0.0

    def __enter__(self) -> Self:
        """Starts anew."""
        self._turns = 0
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Does nothing."""

    def __iter__(self) -> Self:
        """Starts anew."""
        self._turns = 0
        return self

    def __next__(self) -> Self:
        """Waits until it is time for the next turn; the first one comes at once."""
        if self._condition is not None and self._condition():
            raise StopIteration
        now = self._clock()
        if self._turns == 0:
            self._due = self._looked = now
        elif self._due > now:
            self._sleep(self._due - now)
        elif (now - self._due) * self.target_rate > self._update_every:
            self._due = now
        self._due += 1 / self.target_rate
        self._turns += 1
        self._measure()
        return self

    @property
    def sleep_time(self) -> float:
        """Seconds from one turn to the next."""
        return 1 / self.target_rate

    def throttle(self) -> Self:
        """The same as `next`."""
        next(self)
        return self

    def _measure(self) -> None:
        if self._turns % self._update_every == 0:
            now = self._clock()
            if now > self._looked:
                measured = self._update_every / (now - self._looked)
                self.rate = measured if self.rate is None else self._alpha * self.rate + (1 - self._alpha) * measured
            self._looked = now
