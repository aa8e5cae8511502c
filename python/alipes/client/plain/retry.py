"""The retry policy of a request: whether it is sent again, and after which pause."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Final

from alipes.client.backoff import NOT_BEGUN, doubled_s
from alipes.errors import AlipesError, DeadlineExceeded, Overloaded, TlsError, TransportError

__all__ = ["NOT_BY_NAME", "UNREGISTER_RETRY", "Attempts", "Failure", "Retry"]

_IN_USE: Final = "it is currently in use"
"""Triton's refusal to unregister a region: it releases the region a moment after the last response that used it."""

NOT_BY_NAME: Final = "explicit model load / unload is not allowed"
"""What a server says that loads its models itself, whatever it is asked. Source: Triton."""


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a request is sent again, and after which pauses.

    Attributes:
        times: Most further attempts.
        first_s: The pause before the first of them. It doubles each time and varies at random between half and one and
            a half times that, so that many clients do not retry together.
        most_s: The longest pause before that variation.
    """

    times: int = 2
    first_s: float = 0.05
    most_s: float = 2.0

    def wait_s(self, attempt: int, chance: float) -> float:
        """The pause before a further attempt, counted from 0; `chance` is between 0 and 1."""
        return doubled_s(self.first_s, self.most_s, attempt) * (0.5 + chance)


UNREGISTER_RETRY: Final = Retry(times=30, first_s=0.005, most_s=0.5)
"""For unregistering shared memory that the server still uses: ten seconds, much more than it needs."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed attempt.

    Attributes:
        error: Its error.
        began_s: Its start, on the monotonic clock.
    """

    error: AlipesError
    began_s: float


class Attempts:
    """The attempts of one request, within its time-out."""

    def __init__(self, retry: Retry, timeout_s: float | None, *, repeatable: bool) -> None:
        """Starts the time-out.

        Args:
            retry: The policy.
            timeout_s: Time for all attempts together; `None` is no limit.
            repeatable: Whether to send again where the server may have executed the request.
        """
        self._retry = retry
        self._repeatable = repeatable
        self._end = None if timeout_s is None else time.monotonic() + timeout_s
        self._made = 0

    def left_s(self) -> float | None:
        """The remaining time; `None` is no limit."""
        return None if self._end is None else max(self._end - time.monotonic(), 0.0)

    def after(self, error: AlipesError) -> float:
        """The pause before the next attempt.

        Raises:
            AlipesError: The error itself, if there is no next attempt.
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
        """As `after`, for a first attempt that was made before this object: its duration counts, too.

        Raises:
            AlipesError: The error itself, if there is no next attempt.
        """
        self.count_time(failure)
        return self.after(failure.error)

    def count_time(self, failure: Failure) -> None:
        """Counts the duration of an attempt that was made before this object."""
        if self._end is not None:
            self._end -= time.monotonic() - failure.began_s

    def check(self, error: AlipesError) -> None:
        """Checks that there is a next attempt, which is made elsewhere and needs no pause; `count` follows.

        Raises:
            AlipesError: The error itself, if there is none.
        """
        if self._made >= self._retry.times or not self._may_repeat(error):
            raise error

    def count(self) -> None:
        """Counts an attempt that is made elsewhere."""
        self._made += 1

    def _may_repeat(self, error: AlipesError) -> bool:
        if isinstance(error, (DeadlineExceeded, TlsError)) or NOT_BY_NAME in str(error):
            return False
        if isinstance(error, TransportError):
            return self._repeatable or not error.reached
        return isinstance(error, NOT_BEGUN) or _IN_USE in str(error)
