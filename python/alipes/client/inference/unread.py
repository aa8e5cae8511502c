"""Failures that nobody has read: of requests whose answers are never asked for, and of callbacks."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, Final

from alipes.client.inference.answers import Raised

__all__ = ["AnswerFuture", "UnreadFailures"]

_LOG: Final = logging.getLogger("alipes.client")


class UnreadFailures:
    """Counts what failed without being read, and logs it in one line when the client ends."""

    def __init__(self, model: str) -> None:
        """Takes the model's name, for the line."""
        self._model = model
        self._lock = threading.RLock()  # a collection may drop a future at any line
        self._dropped = 0
        self._first: BaseException | None = None
        self._futures: weakref.WeakSet[AnswerFuture] = weakref.WeakSet()
        self._ended = False

    def begin(self) -> None:
        """Notes that the client goes on: what fails is counted again until it ends."""
        self._ended = False

    def forget(self) -> None:
        """In a forked process: the failures so far are the parent's, and so is who holds the lock."""
        for future in list(self._futures):
            future.disown()
        self.__init__(self._model)  # type: ignore[misc]

    def watch(self, future: AnswerFuture) -> None:
        """Notes a future that has failed, and that somebody may still look at."""
        self._futures.add(future)

    def drop(self, error: BaseException) -> None:
        """Counts a future that has failed and is gone without a look at it. What comes late is logged at once."""
        with self._lock:
            self._dropped += 1
            self._first = self._first or error
        if self._ended:
            self.report(())

    def report(self, queued: Iterable[Raised], advice: str = "") -> None:
        """Logs what was not read and not logged before, if there is anything.

        Args:
            queued: What reading the client's answers would raise.
            advice: What can still be done about it.
        """
        new = [one for one in queued if not one.reported]
        for one in new:
            one.reported = True
        with self._lock:
            dropped, first, self._dropped, self._first = self._dropped, self._first, 0, None
        self._ended = True
        calls = sum(one.by_callback for one in new)
        requests = len(new) - calls + dropped
        if not (calls or requests):
            return
        parts = [f"{requests} request{'s' * (requests > 1)} failed"] if requests else []
        parts += [f"the callback raised {calls} time{'s' * (calls > 1)}"] if calls else []
        error = new[0].error if new else first
        _LOG.warning(
            "model '%s': %s, not read%s; the first: %s: %s",
            self._model,
            " and ".join(parts),
            advice,
            type(error).__name__,
            error,
        )

    def report_all(self, queued: Iterable[Raised]) -> None:
        """The same at the end of the process, where futures that failed are not looked at any more either."""
        for future in list(self._futures):
            future.forget()
        self.report(queued)


class AnswerFuture(Future[Any]):
    """The answer to a request. One that fails and goes without a look at it is counted."""

    def __init__(self, failures: UnreadFailures) -> None:
        """Counts with these failures."""
        super().__init__()
        self._failures = failures
        self._error: BaseException | None = None

    def set_exception(self, exception: BaseException | None) -> None:
        """Ends it with an error."""
        self._error = exception
        self._failures.watch(self)
        super().set_exception(exception)

    def result(self, timeout: float | None = None) -> Any:
        """The answer, or the error raised."""
        found = None
        try:
            found = super().result(timeout)
        finally:
            self._looked()
            self = None  # type: ignore[assignment]  # noqa: PLW0642 - the error's traceback keeps this frame
        return found

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The error, or `None`."""
        found = super().exception(timeout)
        self._looked()
        return found

    def forget(self) -> None:
        """Counts its error as dropped, unless somebody has looked."""
        error, self._error = self._error, None
        if error is not None:
            self._failures.drop(error)

    def disown(self) -> None:
        """Lets its error be another process's, which counts it."""
        self._error = None

    def __del__(self) -> None:
        """Nobody can look any more."""
        self.forget()

    def _looked(self) -> None:
        if self.done():
            self._error = None
