"""The link to a server: one stream, the requests on it, and a thread that receives.

When a stream breaks, requests are sent again where that is safe: those without a sequence as often as they may be
repeated, and those of a sequence behind the updates that rebuild its state, if the client has these updates.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from alipes.client.inference.failures import LOST_STATE, may_repeat, of_status, of_text
from alipes.client.inference.recovery import RecoveryPolicy, advised, not_back, repeated, stream_ended
from alipes.client.inference.sequence_queue import PendingRequest, SequenceQueue
from alipes.client.inference.stream import Response, Stream, Target
from alipes.errors import AlipesError, DeadlineExceeded, Internal, NotReady, TransportError

__all__ = ["Link"]

_LOG: Final = logging.getLogger("alipes.client")

_RECEIVE_BATCH: Final = 512
"""Most responses received at a time."""

_TICK_S: Final = 0.1
"""The receiver checks deadlines and delayed requests at least this often."""

_RESEND_AHEAD: Final = 64
"""Most requests that are resent without waiting for responses: while the receiver sends, nothing is received."""

_MOST_TRIES: Final = 8
"""A request fails after so many sends without a response, whatever the reason."""

_CLOSE_TIMEOUT_S: Final = 10.0
"""Time for the server to end the stream after the client has half-closed it."""


class Link:
    """The pending requests of one client. Any thread may send; responses are delivered on the link's own thread.

    Attributes:
        recovering: Whether it is connecting anew, while who sends waits.
    """

    def __init__(
        self,
        address: str,
        target: Target,
        connect: Callable[[], Stream],
        deliver: Callable[[list[PendingRequest]], None],
        recovery: RecoveryPolicy,
    ) -> None:
        """Opens nothing yet.

        Args:
            address: The server's, for messages.
            target: The model, its version and the parameters of every request.
            connect: Opens a stream to a server that can answer; raises `TransportError` or `NotReady`.
            deliver: Receives answered and failed requests, in the order of their queues.
            recovery: The recovery from failures.
        """
        self._address = address
        self._target = target
        self._connect = connect
        self._deliver = deliver
        self._recovery = recovery
        self._lock = threading.Condition(threading.Lock())
        self._stream: Stream | None = None
        self._receiver: threading.Thread | None = None
        self._in_flight: dict[str, PendingRequest] = {}
        self._resending: deque[PendingRequest] = deque()
        self._delayed: list[tuple[float, int, PendingRequest]] = []
        self._deadlines: list[tuple[float, int, PendingRequest]] = []
        self._numbers = itertools.count()
        self._queues: dict[int | str, SequenceQueue] = {}
        self._ending = threading.Event()
        self._dropped = False
        self.recovering = False

    @property
    def receiving(self) -> bool:
        """Whether the calling thread is the one that receives: nothing is answered while it waits."""
        return threading.current_thread() is self._receiver

    def open(self) -> None:
        """Connects, where that is not done yet.

        Raises:
            TransportError: If the server cannot be reached.
        """
        with self._lock:
            self._opened()

    def send(self, request: PendingRequest) -> None:
        """Puts a request on its way.

        Raises:
            TransportError: If the server cannot be reached, or the state of the request's sequence is lost.
        """
        queue = request.queue
        with self._lock:
            while self._resending and not self.receiving:
                self._lock.wait()
            request.number = next(self._numbers)
            if queue.lost is not None:
                if not request.start:
                    raise repeated(queue.lost)
                queue.lost = None
            if queue.recovering or self._resending:
                request.own_tensors()
                queue.waiting.append(request)
                (queue.held if queue.recovering else self._resending).append(request)
                return
            stream = self._opened()
            if queue.recoverable or (queue.sequence_id is None and self._recovery.retries):
                request.own_tensors()
            queue.waiting.append(request)
            try:
                self._post(stream, request)
            except BaseException:
                queue.waiting.remove(request)
                raise
            self._remember(queue, request)

    def close(self) -> None:
        """Ends the stream in order, once everything is answered."""
        self._ending.set()  # before the lock, which a reconnecting thread holds until it sees this
        with self._lock:
            stream, receiver = self._stream, self._receiver
        if stream is not None:
            stream.half_close()
        if receiver is not None and not self.receiving:
            receiver.join(_CLOSE_TIMEOUT_S)
            if receiver.is_alive() and stream is not None:
                stream.cancel()
                receiver.join()
        self._reset()

    def drop(self) -> None:
        """Ends the stream at once; of the pending requests, only futures are cancelled."""
        self._dropped = True
        self._ending.set()
        stream, receiver = self._stream, self._receiver
        pending = [*self._in_flight.values(), *self._resending, *(row[2] for row in self._delayed)]
        if stream is not None:
            stream.cancel()
        if receiver is not None and not self.receiving:
            receiver.join()
        for request in pending:
            if request.future is not None:
                request.future.cancel()
        self._reset()

    def forget(self) -> None:
        """Leaves everything to the process that this one was forked from."""
        self._lock = threading.Condition(threading.Lock())
        self._reset()

    def _reset(self) -> None:
        self._stream = self._receiver = None
        self._in_flight.clear()
        self._resending.clear()
        self._delayed.clear()
        self._deadlines.clear()
        self._queues.clear()
        self._ending.clear()
        self._dropped = False
        with self._lock:
            self._lock.notify_all()

    # What follows is called with the lock held.

    def _opened(self) -> Stream:
        if self._stream is None:
            stream = self._connect()
            self._receiver = threading.Thread(
                target=self._receive, args=(stream,), name="alipes-client-receiver", daemon=True
            )
            self._stream = stream
            self._receiver.start()
        return self._stream

    def _post(self, stream: Stream, request: PendingRequest) -> None:
        """Sends a request; if the stream is broken, the receiver finds it among those in flight."""
        now_s = time.monotonic()
        queue, wire_id = request.queue, request.wire_id
        if not wire_id or wire_id in self._in_flight:
            wire_id = request.wire_id = self._wire_id(request)
        if request.deadline_s is not None and not request.tries:
            heapq.heappush(self._deadlines, (request.deadline_s, next(self._numbers), request))
        request.tries += 1
        request.sent_s = request.sent_s or now_s
        self._in_flight[wire_id] = request
        try:
            stream.send(
                self._target.model,
                self._target.version,
                request.tensors,
                None,
                wire_id,
                queue.sequence_id,
                request.start,
                request.end,
                self._target.parameters,
                request.timeout_us,
            )
        except TransportError:
            return
        except BaseException:
            del self._in_flight[wire_id]
            raise
        if not (queue.recoverable or (queue.sequence_id is None and self._recovery.retries)):
            request.tensors = ()

    def _wire_id(self, request: PendingRequest) -> str:
        sequence_id = request.queue.sequence_id
        wire_id = f"{request.request_id}" if sequence_id is None else f"{request.request_id}_{sequence_id}"
        return f"{wire_id}~{next(self._numbers)}" if wire_id in self._in_flight else wire_id

    def _remember(self, queue: SequenceQueue, request: PendingRequest) -> None:
        """Records the queue of a live sequence that can be brought back, even while it has no request under way."""
        if queue.sequence_id is None or not queue.recoverable:
            return
        if request.end:
            self._queues.pop(queue.sequence_id, None)
        else:
            self._queues[queue.sequence_id] = queue

    def _is_in_flight(self, queue: SequenceQueue) -> bool:
        return any(request.queue is queue for request in self._in_flight.values())

    # What follows runs on the receiver's thread.

    def _receive(self, stream: Stream) -> None:
        following: Stream | None = stream
        try:
            while following is not None:
                stream = following
                batch = stream.receive(_RECEIVE_BATCH, self._wait_s())
                if batch is None:
                    following = self._recover(stream)
                elif batch:
                    self._deliver_settled(self._settle_all(batch))
                if self._resending or self._delayed or self._deadlines:
                    self._check_times(following)
        except BaseException as error:
            _LOG.exception("the client's receiver failed")
            stream.cancel()
            self._fail_everything(Internal(f"the client's receiver failed: {error!r}"))

    def _wait_s(self) -> float:
        due_s = [heap[0][0] for heap in (self._delayed, self._deadlines) if heap]
        return max(0.0, min([_TICK_S, *(at_s - time.monotonic() for at_s in due_s)]))

    def _deliver_settled(self, leaving: list[PendingRequest]) -> None:
        if leaving and not self._dropped:
            self._deliver(leaving)

    def _settle_all(self, batch: Iterable[Response]) -> list[PendingRequest]:
        leaving: list[PendingRequest] = []
        in_flight = self._in_flight
        for wire_id, outputs, text, last in batch:
            # Some servers name no request in an error; they answer in order, so it is the oldest one's.
            request = in_flight.get(wire_id) or (next(iter(in_flight.values()), None) if text and not wire_id else None)
            if request is None:
                if text is not None:
                    # Behind a response that did not say whether others follow: that one was taken for the last.
                    _LOG.warning("%s refuses a request that is answered already (%r): %s", self._address, wire_id, text)
                continue
            if outputs and not request.replay:
                request.answers.append(outputs)
            if text is None and last is False:
                continue
            in_flight.pop(request.wire_id, None)
            error = None if text is None else of_text(text, self._target.model, str(request.request_id))
            self._settle(request, error, leaving)
        return leaving

    def _settle(self, request: PendingRequest, error: AlipesError | None, leaving: list[PendingRequest]) -> None:
        """Decides what an answer means: sent again, or done."""
        queue = request.queue
        if request.replay:
            # Lost again on the way: then what follows is refused likewise, and is brought back from the start.
            if error is not None and queue.lost is None and not LOST_STATE.search(str(error)):
                queue.lost = not_back(self._address, queue, error)
            return
        if request.done:  # its deadline has passed, but the server's state includes it
            if error is None and queue.sequence_id is not None:
                queue.note_answered(request)
            return
        if error is not None:
            if self._is_recovered(request, error):
                return
            if queue.sequence_id is None and request.tries <= self._recovery.retries and may_repeat(error):
                pause_s = self._recovery.backoff.pause_s(request.tries, getattr(error, "retry_after_s", None))
                heapq.heappush(self._delayed, (time.monotonic() + pause_s, next(self._numbers), request))
                request.answers.clear()
                return
            error = advised(queue, error)
        elif queue.sequence_id is not None:
            queue.note_answered(request)
        self._finish(request, error, leaving)

    def _finish(self, request: PendingRequest, error: AlipesError | None, leaving: list[PendingRequest]) -> None:
        queue = request.queue
        if error is None and queue.lost is not None and queue.recoverable:
            error = repeated(queue.lost)
        request.error = error
        request.done = True
        leaving.extend(queue.leave(request))

    def _is_recovered(self, request: PendingRequest, error: AlipesError) -> bool:
        """Whether the server has lost a sequence that can be brought back; then its requests wait for that."""
        queue = request.queue
        if not queue.recoverable or request.start or request.tries >= _MOST_TRIES or not LOST_STATE.search(str(error)):
            return False
        with self._lock:
            if not queue.recovering:
                _LOG.warning("%s has lost sequence %s: it is restored", self._address, queue.sequence_id)
            queue.recovering = True
            queue.held.append(request)
            if not self._is_in_flight(queue):
                self._replay_updates(queue, list(queue.held))
                queue.held.clear()
                queue.recovering = False
        return True

    def _replay_updates(self, queue: SequenceQueue, unanswered: Iterable[PendingRequest]) -> None:
        self._resending.extend(queue.replay())
        # Some were held back as soon as the loss was known, before others came back that had been sent earlier.
        self._resending.extend(sorted(unanswered, key=lambda request: request.number))

    def _check_times(self, stream: Stream | None) -> None:
        """Sends again what is due, and fails what is late."""
        now_s = time.monotonic()
        late: list[PendingRequest] = []
        while self._deadlines and (self._deadlines[0][0] <= now_s or self._deadlines[0][2].done):
            request = heapq.heappop(self._deadlines)[2]
            if not request.done:
                text = f"no answer within {request.limit_s:g} s"
                error = DeadlineExceeded(text, model=self._target.model, request_id=str(request.request_id))
                self._finish(request, error, late)
        self._deliver_settled(late)
        if stream is None or not (self._resending or self._delayed):
            return
        with self._lock:
            while self._delayed and self._delayed[0][0] <= now_s:
                self._resending.append(heapq.heappop(self._delayed)[2])
            while self._resending and len(self._in_flight) < _RESEND_AHEAD:
                request = self._resending.popleft()
                if not request.done or request.queue.recoverable:  # a late update is still part of its sequence
                    self._post(stream, request)
            if not self._resending:
                self._lock.notify_all()

    # When a stream has ended.

    def _recover(self, stream: Stream) -> Stream | None:
        """Settles what was on its way when a stream ended; returns the stream that it goes on with, if any."""
        failed: list[PendingRequest] = []
        self.recovering = True
        with self._lock:
            code, text = stream.status() or ("UNKNOWN", "the stream ended")
            cause = of_status(code, text or "the server ended the stream")
            pending = [*self._in_flight.values(), *self._resending]
            self._in_flight.clear()
            self._resending.clear()
            if self._ending.is_set():
                following = None
                self._fail_pending(pending, cause, failed)
            else:
                following = self._resume(pending, cause, failed)
            self._stream = following
            if following is None:
                self._receiver = None if not self._ending.is_set() else self._receiver
            self.recovering = False
            self._lock.notify_all()
        self._deliver_settled(failed)
        return following

    def _resume(self, pending: list[PendingRequest], cause: AlipesError, failed: list[PendingRequest]) -> Stream | None:
        waiting: dict[SequenceQueue, list[PendingRequest]] = {queue: [] for queue in self._queues.values()}
        loose: list[PendingRequest] = [row[2] for row in self._delayed]
        lost = []
        for request in pending:
            if request.queue.recoverable:
                waiting.setdefault(request.queue, []).append(request)
            elif request.queue.sequence_id is None and request.tries <= self._recovery.retries:
                request.answers.clear()  # it is answered anew, from the first response
                loose.append(request)
            else:
                lost.append(request)
        self._delayed.clear()
        self._fail_pending(lost, cause, failed)
        if not waiting and not loose:
            return None
        following = self._reconnect(cause)
        if following is None:
            self._fail_pending([*loose, *(request for some in waiting.values() for request in some)], cause, failed)
            for queue in waiting:
                queue.lost = queue.lost or not_back(self._address, queue, cause)
            return None
        for queue, some in waiting.items():
            own = [request for request in some if not request.replay]
            self._replay_updates(queue, [*own, *queue.held])
            queue.held.clear()
            queue.recovering = False
        self._resending.extend(loose)
        return following

    def _reconnect(self, cause: AlipesError) -> Stream | None:
        """A new stream as soon as the server is back; `None` after the reconnect time, or if the link is closing."""
        if not isinstance(cause, (TransportError, NotReady, Internal)):
            return None
        _LOG.warning("the stream to %s ended (%s): connecting again", self._address, cause)
        deadline_s = time.monotonic() + self._recovery.reconnect_s
        for attempt in itertools.count(1):
            if self._ending.is_set():
                return None
            try:
                return self._connect()
            except (TransportError, NotReady) as error:
                pause_s = self._recovery.backoff.pause_s(attempt)
                if time.monotonic() + pause_s >= deadline_s:
                    _LOG.warning("%s cannot be reached again: %s", self._address, error)
                    return None
                self._ending.wait(pause_s)
        return None

    def _fail_pending(self, lost: Iterable[PendingRequest], cause: AlipesError, failed: list[PendingRequest]) -> None:
        counts: dict[SequenceQueue, int] = {}
        lost = [request for request in lost if not request.replay]
        for request in lost:
            counts[request.queue] = counts.get(request.queue, 0) + 1
        for request in lost:
            if not request.done:
                self._finish(request, stream_ended(self._address, request.queue, counts[request.queue], cause), failed)
        for queue, count in counts.items():
            if queue.sequence_id is not None:
                queue.lost = stream_ended(self._address, queue, count, cause)

    def _fail_everything(self, error: AlipesError) -> None:
        failed: list[PendingRequest] = []
        with self._lock:
            pending = [*self._in_flight.values(), *self._resending, *(row[2] for row in self._delayed)]
            self._in_flight.clear()
            self._resending.clear()
            self._delayed.clear()
            self._stream = self._receiver = None
            self._fail_pending(pending, error, failed)
            self._lock.notify_all()
        self._deliver_settled(failed)
