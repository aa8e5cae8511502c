"""The answers of a client: delivered to futures, to the callback or to a queue, and read from the queue."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures import as_completed as _as_completed
from typing import Any

from alipes.client.inference.answers import Answers, Raised
from alipes.client.inference.clock import ProfilerClock
from alipes.client.inference.sequence_queue import PendingRequest
from alipes.client.inference.unread import UnreadFailures
from alipes.client.inference.window import Window
from alipes.config.named import Named
from alipes.errors import AlipesError, InferError

__all__ = ["AnswerSource"]


class AnswerSource:
    """The answers to the requests of a client, which is a subclass.

    Attributes:
        callback: What is called with each answer.
        callback_q: Answers that were not read yet.
        clock: Latencies; `None` where they are not measured.
    """

    def __init__(
        self,
        callback: Callable[[Any, Any, Any], Any] | None,
        clock: ProfilerClock | None,
        max_in_flight: int | None,
        single: bool,
        failures: UnreadFailures,
    ) -> None:
        """Has no answers yet.

        Args:
            callback: Called with `(y, request_id, sequence_id)` for each answer.
            clock: Counts latencies.
            max_in_flight: Most requests in flight; `None` is no limit.
            single: Whether the model has one output: answers are arrays then, and else arrays by name.
            failures: Is told of failures that nobody has read.
        """
        self.callback = callback
        self.callback_q = Answers()
        self.clock = clock
        self._single = single
        self._failures = failures
        self._window = Window(max_in_flight)

    @staticmethod
    def as_completed(futures: Iterable[Future[Any]], timeout_s: float | None = None) -> Iterator[Future[Any]]:
        """The futures of `submit`, each as soon as it is done."""
        return _as_completed(futures, timeout_s)

    def get(self, until_empty: bool = False, timeout_s: float | None = 0.0) -> Any:
        """The next answer.

        Args:
            until_empty: Whether everything that is there is wanted, as a list.
            timeout_s: How long to wait for an answer, in seconds; `None` waits until there is one, or until nothing is
                under way that could bring one.

        Returns:
            `(y, request_id, sequence_id)`, or what the callback has returned; `None` where there is nothing.

        Raises:
            AlipesError: If a request has failed; what else was there stays.
        """
        answers = self.callback_q
        if timeout_s == 0.0:
            return answers.take_all() if until_empty else answers.take()
        first = answers.wait(timeout_s, self._idle)
        if not until_empty:
            return first
        return [] if first is None else answers.take_all([first])

    def __iter__(self) -> Iterator[Any]:
        """Answers as they come, until everything that was sent is answered."""
        while (answer := self.get(timeout_s=None)) is not None or not self._idle():
            if answer is not None:
                yield answer

    async def __aiter__(self) -> AsyncIterator[Any]:
        """Answers as they come, for event loops, until everything that was sent is answered."""
        import asyncio

        loop, arrived = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            loop.call_soon_threadsafe(arrived.set)

        self.callback_q.listen(wake)
        try:
            while True:
                arrived.clear()
                while len(self.callback_q):
                    if (answer := self.callback_q.take()) is not None:  # another reader may have been quicker
                        yield answer
                if self._idle() and not len(self.callback_q):
                    return
                await arrived.wait()
        finally:
            self.callback_q.unlisten(wake)

    @property
    def in_flight(self) -> int:
        """Requests that are not answered yet."""
        return self._window.count

    def drain(self, timeout_s: float | None = None) -> None:
        """Returns once everything that was sent is answered.

        Raises:
            DeadlineExceeded: If the time is up before.
        """
        self._window.wait_empty(timeout_s)

    def _idle(self) -> bool:
        return not self._window.count

    def _deliver(self, leaving: list[PendingRequest]) -> None:
        """Delivers answers to futures, the callback or the queue; runs on the link's thread."""
        for request in leaving:
            if request.future is not None:
                self._resolve(request, request.future)
            elif request.error is not None:
                self.callback_q.put(Raised(_identified(request)))
            else:
                for outputs in request.answers:
                    self._queue(self._y(request, outputs), request)
            if self.clock is not None and request.error is None:
                self.clock.note(request.queue.sequence_id, time.monotonic() - request.sent_s)
        self._window.leave(len(leaving))
        if not self._window.count:
            self.callback_q.wake()

    def _y(self, request: PendingRequest, outputs: dict[str, Any]) -> Any:
        if request.crop is not None:
            outputs = request.crop.apply(outputs)
        return (
            next(iter(outputs.values()))
            if self._single and not request.named
            else Named(outputs, "the answer", "output")
        )

    def _queue(self, y: Any, request: PendingRequest) -> None:
        sequence_id = request.queue.sequence_id
        if self.callback is None:
            self.callback_q.put((y, request.request_id, sequence_id))
            return
        try:
            result = self.callback(y, request.request_id, sequence_id)
        except BaseException as error:
            self.callback_q.put(Raised(error, by_callback=True))
        else:
            if result is not None:
                self.callback_q.put(result)

    def _resolve(self, request: PendingRequest, future: Future[Any]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        if request.error is not None:
            future.set_exception(_identified(request))
        else:
            answers = [self._y(request, outputs) for outputs in request.answers]
            future.set_result(answers[0] if len(answers) == 1 else answers)


def _identified(request: PendingRequest) -> AlipesError:
    """The error of a request, with what is known of the request."""
    error = request.error
    assert error is not None
    if isinstance(error, InferError):
        error.request_id, error.sequence_id = str(request.request_id), request.queue.sequence_id
    return error
