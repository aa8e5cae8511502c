"""What an explanation may take: seconds, calls of the predictor, passes; and the meter that counts them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from alipes.errors import ConfigError, DeadlineExceeded

__all__ = ["LimitReached", "Limits", "Meter"]

_MOST_SECONDS: Final = 86_400.0
_MOST: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the explanations of one request may take together.

    Attributes:
        seconds: Longest time.
        calls: Most calls of the predictor; each call has a batch of perturbed inputs.
        passes: Estimates that are averaged for each input: more are more exact, and take longer.
        on_limit: What happens where seconds or calls are used up before the last pass: `approximate` answers with the
            passes that are complete, and says so; `error` refuses. Without one complete pass it is always an error.
    """

    seconds: float = 30.0
    calls: int = 10_000
    passes: int = 10
    on_limit: Literal["approximate", "error"] = "approximate"

    def __post_init__(self) -> None:
        """Checks the numbers.

        Raises:
            ConfigError: If one of them is out of its range.
        """
        if isinstance(self.seconds, bool) or not 0 < self.seconds <= _MOST_SECONDS:
            raise ConfigError(f"Limits(seconds={self.seconds!r}) must be a number above 0, up to {_MOST_SECONDS:g}")
        for name in ("calls", "passes"):
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= _MOST:
                raise ConfigError(f"Limits({name}={value!r}) must be an integer from 1 to {_MOST}", key=name)
        if self.on_limit not in ("approximate", "error"):
            raise ConfigError(f"Limits(on_limit={self.on_limit!r}) must be 'approximate' or 'error'", key="on_limit")


class LimitReached(Exception):
    """Seconds or calls are used up."""


class Meter:
    """Counts what the explanations of one request take.

    Attributes:
        limits: What they may take.
        calls: Calls of the predictor so far.
    """

    def __init__(self, limits: Limits, now: Callable[[], float] = time.monotonic) -> None:
        """Starts the time.

        Args:
            limits: What the explanations may take.
            now: The clock, in seconds.
        """
        self.limits = limits
        self.calls = 0
        self._now = now
        self._began_s = now()

    @property
    def left_s(self) -> float:
        """Seconds that are left."""
        return self.limits.seconds - (self._now() - self._began_s)

    def count_call(self) -> None:
        """Counts a call that is about to be made.

        Raises:
            LimitReached: If it may not be made.
        """
        if self.calls >= self.limits.calls or self.left_s <= 0:
            raise LimitReached
        self.calls += 1

    def exceeded(self, passes: int) -> DeadlineExceeded:
        """The error where too few passes are complete.

        Args:
            passes: Complete passes.
        """
        spent = "seconds" if self.left_s <= 0 else "calls"
        limit = getattr(self.limits, spent)
        return DeadlineExceeded(
            f"the explanation reached its limit of {limit:g} {spent} after {self.calls} calls of the predictor, with "
            f"{passes} of {self.limits.passes} passes: raise it, as in Limits({spent}={2 * limit:g}), or ask for fewer "
            "instances"
        )
