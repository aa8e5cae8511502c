"""When a question is asked again, and after how long."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Final

from alipes.errors import AlipesError, DeadlineExceeded, NotReady, Overloaded, TlsError, TransportError

__all__ = ["LETTING_GO", "Attempts", "Failure", "Retry"]

_REFUSED: Final = (NotReady, Overloaded)
"""Answers of a server that has not begun with the request."""

_IN_USE: Final = "it is currently in use"
"""How Triton refuses to forget shared memory: it lets go of it a moment after the answer in which it was last used."""


@dataclass(frozen=True, slots=True)
class Retry:
    """How often, and how patiently.

    Attributes:
        times: Most further attempts.
        first_s: The wait before the first of them; it doubles each time, and is up to half as long or longer by chance,
            so that many clients do not come back together.
        most_s: The longest wait.
    """

    times: int = 2
    first_s: float = 0.05
    most_s: float = 2.0

    def wait_s(self, attempt: int, chance: float) -> float:
        """The wait before a further attempt, counted from 0; `chance` is between 0 and 1."""
        wait_s: float = min(self.first_s * 2.0**attempt, self.most_s) * (0.5 + chance)
        return wait_s


LETTING_GO: Final = Retry(times=30, first_s=0.005, most_s=0.5)
"""How patiently a server is asked to forget shared memory that it still uses: ten seconds, much more than it needs."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An attempt that was made and failed.

    Attributes:
        error: Why.
        began_s: When it began, by the monotonic clock.
    """

    error: AlipesError
    began_s: float


class Attempts:
    """One question's attempts, within its time."""

    def __init__(self, retry: Retry, timeout_s: float | None, *, repeatable: bool) -> None:
        """The time begins to run.

        Args:
            retry: How often.
            timeout_s: Time for all attempts together; `None` is no limit.
            repeatable: Whether to ask again where the server may have begun with the request.
        """
        self._retry = retry
        self._repeatable = repeatable
        self._end = None if timeout_s is None else time.monotonic() + timeout_s
        self._made = 0

    def left_s(self) -> float | None:
        """Time that is left."""
        return None if self._end is None else max(self._end - time.monotonic(), 0.0)

    def after(self, error: AlipesError) -> float:
        """The wait before the next attempt.

        Raises:
            AlipesError: The error itself, where there should be none.
        """
        left_s = self.left_s()
        wait_s = self._retry.wait_s(self._made, random.random())
        if isinstance(error, Overloaded) and error.retry_after_s is not None:
            wait_s = max(wait_s, error.retry_after_s)
        if self._made >= self._retry.times or not self._may_repeat(error) or (left_s is not None and left_s <= wait_s):
            raise error
        self._made += 1
        return wait_s

    def after_first(self, failure: Failure) -> float:
        """The same, where the first attempt was made before there was any talk of further ones: its time counts.

        Raises:
            AlipesError: The error itself, where there should be none.
        """
        if self._end is not None:
            self._end -= time.monotonic() - failure.began_s
        return self.after(failure.error)

    def _may_repeat(self, error: AlipesError) -> bool:
        if isinstance(error, (DeadlineExceeded, TlsError)):
            return False
        if isinstance(error, TransportError):
            return self._repeatable or not error.reached
        return isinstance(error, _REFUSED) or _IN_USE in str(error)
