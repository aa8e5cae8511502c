"""The link to a server: one stream, the requests on it, and a thread that receives.

When a stream breaks, requests are sent again where that is safe: those that belong to no sequence as often as they may
be repeated, and those of a sequence behind the updates that bring its state back, if the client keeps these.
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

from alipes.client.inference.backoff import Backoff
from alipes.client.inference.failures import LOST_STATE, may_repeat, of_status, of_text
from alipes.client.inference.lines import Asked, Line
from alipes.client.inference.stream import Response, Stream, Target
from alipes.errors import AlipesError, DeadlineExceeded, InferError, Internal, NotReady, TransportError

__all__ = ["Link", "Patience"]

_LOG: Final = logging.getLogger("alipes.client")

_AT_ONCE: Final = 512
"""Responses taken in one go."""

_TICK_S: Final = 0.1
"""The receiver looks at deadlines and at what is to be sent again at least so often."""

_AHEAD: Final = 64
"""Requests that are sent again without waiting for answers: nobody receives while the receiver sends."""

_MOST_TRIES: Final = 8
"""A request that brought no answer so often is given up, whatever the reason."""

_GOODBYE_S: Final = 10.0
"""A server that was told that nothing more comes has so long to end the stream."""

_ADVICE: Final = (
    "begin a new sequence with sequence_start=True, or create the client with checkpoint=True, which brings sequences "
    "back"
)
"""What can be done about a state that is lost, and what could have been."""


class Patience:
    """What is done about failures.

    Attributes:
        retries: How often a request that belongs to no sequence is sent again.
        reconnect_s: How long a connection that broke is tried again.
        backoff: How long to wait between.
    """

    def __init__(self, retries: int, reconnect_s: float, backoff: Backoff) -> None:
        """Takes the values."""
        self.retries = retries
        self.reconnect_s = reconnect_s
        self.backoff = backoff


class Link:
    """Requests on their way. Requests may be sent from any thread; answers leave from one of the link's own."""

    def __init__(
        self,
        address: str,
        target: Target,
        connect: Callable[[], Stream],
        deliver: Callable[[list[Asked]], None],
        patience: Patience,
    ) -> None:
        """Opens nothing yet.

        Args:
            address: The server's, for messages.
            target: What is asked.
            connect: Opens a stream to a server that can answer; raises `TransportError` or `NotReady`.
            deliver: Takes requests that are answered or failed, in the order of their lines.
            patience: What is done about failures.
        """
        self._address = address
        self._target = target
        self._connect = connect
        self._deliver = deliver
        self._patience = patience
        self._lock = threading.Condition(threading.Lock())
        self._stream: Stream | None = None
        self._receiver: threading.Thread | None = None
        self._flying: dict[str, Asked] = {}
        self._again: deque[Asked] = deque()
        self._later: list[tuple[float, int, Asked]] = []
        self._deadlines: list[tuple[float, int, Asked]] = []
        self._numbers = itertools.count()
        self._lines: dict[int | str, Line] = {}
        self._ending = threading.Event()
        self._dropped = False

    @property
    def receiving(self) -> bool:
        """Whether the calling thread is the one that receives: nothing is answered while it waits."""
        return threading.current_thread() is self._receiver

    def open(self) -> None:
        """Connects, where that is not done yet.

        Raises:
            TransportError: If nobody answers.
        """
        with self._lock:
            self._opened()

    def send(self, asked: Asked) -> None:
        """Puts a request on its way.

        Raises:
            TransportError: If nobody answers, or the state of the request's sequence is lost.
        """
        line = asked.line
        with self._lock:
            while self._again and not self.receiving:
                self._lock.wait()
            asked.number = next(self._numbers)
            if line.lost is not None:
                if not asked.start:
                    raise _again_of(line.lost)
                line.lost = None
            if line.returning or self._again:
                asked.own_tensors()
                line.waiting.append(asked)
                (line.held if line.returning else self._again).append(asked)
                return
            stream = self._opened()
            if line.keeps or (line.sequence_id is None and self._patience.retries):
                asked.own_tensors()
            line.waiting.append(asked)
            try:
                self._post(stream, asked)
            except BaseException:
                line.waiting.remove(asked)
                raise
            self._remember(line, asked)

    def close(self) -> None:
        """Ends the stream in order, once everything is answered."""
        self._ending.set()  # before the lock: whoever connects again holds it, and gives up
        with self._lock:
            stream, receiver = self._stream, self._receiver
        if stream is not None:
            stream.half_close()
        if receiver is not None and not self.receiving:
            receiver.join(_GOODBYE_S)
            if receiver.is_alive() and stream is not None:
                stream.cancel()
                receiver.join()
        self._reset()

    def drop(self) -> None:
        """Ends the stream at once; nobody is told of what was under way, but whoever holds a future of it."""
        self._dropped = True
        self._ending.set()
        stream, receiver = self._stream, self._receiver
        under_way = [*self._flying.values(), *self._again, *(row[2] for row in self._later)]
        if stream is not None:
            stream.cancel()
        if receiver is not None and not self.receiving:
            receiver.join()
        for asked in under_way:
            if asked.future is not None:
                asked.future.cancel()
        self._reset()

    def forget(self) -> None:
        """Leaves everything to the process that this one was forked from."""
        self._lock = threading.Condition(threading.Lock())
        self._reset()

    def _reset(self) -> None:
        self._stream = self._receiver = None
        self._flying.clear()
        self._again.clear()
        self._later.clear()
        self._deadlines.clear()
        self._lines.clear()
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

    def _post(self, stream: Stream, asked: Asked) -> None:
        """Sends; when the stream is broken, whoever receives finds the request among those on their way."""
        now_s = time.monotonic()
        line, wire_id = asked.line, asked.wire_id
        if not wire_id or wire_id in self._flying:
            wire_id = asked.wire_id = self._wire_id(asked)
        if asked.deadline_s is not None and not asked.tries:
            heapq.heappush(self._deadlines, (asked.deadline_s, next(self._numbers), asked))
        asked.tries += 1
        asked.sent_s = asked.sent_s or now_s
        self._flying[wire_id] = asked
        try:
            stream.send(
                self._target.model,
                self._target.version,
                asked.tensors,
                None,
                wire_id,
                line.sequence_id,
                asked.start,
                asked.end,
                self._target.parameters,
                asked.timeout_us,
            )
        except TransportError:
            return
        except BaseException:
            del self._flying[wire_id]
            raise
        if not (line.keeps or (line.sequence_id is None and self._patience.retries)):
            asked.tensors = ()

    def _wire_id(self, asked: Asked) -> str:
        sequence_id = asked.line.sequence_id
        wire_id = f"{asked.request_id}" if sequence_id is None else f"{asked.request_id}_{sequence_id}"
        return f"{wire_id}~{next(self._numbers)}" if wire_id in self._flying else wire_id

    def _remember(self, line: Line, asked: Asked) -> None:
        """Lines of live sequences that can be brought back, also while none of their requests is on its way."""
        if line.sequence_id is None or not line.keeps:
            return
        if asked.end:
            self._lines.pop(line.sequence_id, None)
        else:
            self._lines[line.sequence_id] = line

    def _flies(self, line: Line) -> bool:
        return any(asked.line is line for asked in self._flying.values())

    # What follows runs on the receiver's thread.

    def _receive(self, stream: Stream) -> None:
        following: Stream | None = stream
        try:
            while following is not None:
                stream = following
                batch = stream.receive(_AT_ONCE, self._nap_s())
                if batch is None:
                    following = self._recover(stream)
                elif batch:
                    self._hand_over(self._settle_all(batch))
                if self._again or self._later or self._deadlines:
                    self._look_at_time(following)
        except BaseException as error:
            _LOG.exception("the client's receiver failed")
            stream.cancel()
            self._fail_everything(Internal(f"the client's receiver failed: {error!r}"))

    def _nap_s(self) -> float:
        due_s = [heap[0][0] for heap in (self._later, self._deadlines) if heap]
        return max(0.0, min([_TICK_S, *(at_s - time.monotonic() for at_s in due_s)]))

    def _hand_over(self, leaving: list[Asked]) -> None:
        if leaving and not self._dropped:
            self._deliver(leaving)

    def _settle_all(self, batch: Iterable[Response]) -> list[Asked]:
        leaving: list[Asked] = []
        flying = self._flying
        for wire_id, outputs, text, last in batch:
            # Some servers name no request in an error; they answer in order, so it is the oldest one's.
            asked = flying.get(wire_id) or (next(iter(flying.values()), None) if text and not wire_id else None)
            if asked is None:
                continue
            if outputs and not asked.replay:
                asked.answers.append(outputs)
            if text is None and not last:
                continue
            flying.pop(asked.wire_id, None)
            error = None if text is None else of_text(text, self._target.model, str(asked.request_id))
            self._settle(asked, error, leaving)
        return leaving

    def _settle(self, asked: Asked, error: AlipesError | None, leaving: list[Asked]) -> None:
        """Decides what an answer means: sent again, or done."""
        line = asked.line
        if asked.replay:
            # Lost again on the way: then what follows is refused likewise, and is brought back from the start.
            if error is not None and line.lost is None and not LOST_STATE.search(str(error)):
                line.lost = self._not_back(line, error)
            return
        if asked.done:  # its deadline has passed, but the server's state holds it
            if error is None and line.sequence_id is not None:
                line.note_answered(asked)
            return
        if error is not None:
            if self._comes_back(asked, error):
                return
            if line.sequence_id is None and asked.tries <= self._patience.retries and may_repeat(error):
                pause_s = self._patience.backoff.pause_s(asked.tries, getattr(error, "retry_after_s", None))
                heapq.heappush(self._later, (time.monotonic() + pause_s, next(self._numbers), asked))
                asked.answers.clear()
                return
            error = _advised(line, error)
        elif line.sequence_id is not None:
            line.note_answered(asked)
        self._finish(asked, error, leaving)

    def _finish(self, asked: Asked, error: AlipesError | None, leaving: list[Asked]) -> None:
        line = asked.line
        if error is None and line.lost is not None and line.keeps:
            error = _again_of(line.lost)
        asked.error = error
        asked.done = True
        leaving.extend(line.leave(asked))

    def _comes_back(self, asked: Asked, error: AlipesError) -> bool:
        """Whether the server has lost a sequence that can be brought back; then its requests wait for that."""
        line = asked.line
        if not line.keeps or asked.start or asked.tries >= _MOST_TRIES or not LOST_STATE.search(str(error)):
            return False
        with self._lock:
            if not line.returning:
                _LOG.warning("%s has lost sequence %s: it is brought back", self._address, line.sequence_id)
            line.returning = True
            line.held.append(asked)
            if not self._flies(line):
                self._bring_back(line, list(line.held))
                line.held.clear()
                line.returning = False
        return True

    def _bring_back(self, line: Line, unanswered: Iterable[Asked]) -> None:
        self._again.extend(line.replay())
        # Some were held back as soon as the loss was known, before others came back that had been sent earlier.
        self._again.extend(sorted(unanswered, key=lambda asked: asked.number))

    def _look_at_time(self, stream: Stream | None) -> None:
        """Sends again what is due, and fails what is late."""
        now_s = time.monotonic()
        late: list[Asked] = []
        while self._deadlines and (self._deadlines[0][0] <= now_s or self._deadlines[0][2].done):
            asked = heapq.heappop(self._deadlines)[2]
            if not asked.done:
                text = f"no answer within {asked.limit_s:g} s"
                error = DeadlineExceeded(text, model=self._target.model, request_id=str(asked.request_id))
                self._finish(asked, error, late)
        self._hand_over(late)
        if stream is None or not (self._again or self._later):
            return
        with self._lock:
            while self._later and self._later[0][0] <= now_s:
                self._again.append(heapq.heappop(self._later)[2])
            while self._again and len(self._flying) < _AHEAD:
                asked = self._again.popleft()
                if not asked.done or asked.line.keeps:  # what is late is a part of its sequence all the same
                    self._post(stream, asked)
            if not self._again:
                self._lock.notify_all()

    # When a stream has ended.

    def _recover(self, stream: Stream) -> Stream | None:
        """Settles what was on its way when a stream ended; returns the stream that it goes on with, if any."""
        failed: list[Asked] = []
        with self._lock:
            code, text = stream.status() or ("UNKNOWN", "the stream ended")
            cause = of_status(code, text or "the server ended the stream")
            under_way = [*self._flying.values(), *self._again]
            self._flying.clear()
            self._again.clear()
            if self._ending.is_set():
                following = None
                self._give_up(under_way, cause, failed)
            else:
                following = self._go_on(under_way, cause, failed)
            self._stream = following
            if following is None:
                self._receiver = None if not self._ending.is_set() else self._receiver
            self._lock.notify_all()
        self._hand_over(failed)
        return following

    def _go_on(self, under_way: list[Asked], cause: AlipesError, failed: list[Asked]) -> Stream | None:
        waiting: dict[Line, list[Asked]] = {line: [] for line in self._lines.values()}
        loose: list[Asked] = [row[2] for row in self._later]
        lost = []
        for asked in under_way:
            if asked.line.keeps:
                waiting.setdefault(asked.line, []).append(asked)
            elif asked.line.sequence_id is None and asked.tries <= self._patience.retries:
                loose.append(asked)
            else:
                lost.append(asked)
        self._later.clear()
        self._give_up(lost, cause, failed)
        if not waiting and not loose:
            return None
        following = self._reconnect(cause)
        if following is None:
            self._give_up([*loose, *(asked for some in waiting.values() for asked in some)], cause, failed)
            for line in waiting:
                line.lost = line.lost or self._not_back(line, cause)
            return None
        for line, some in waiting.items():
            own = [asked for asked in some if not asked.replay]
            self._bring_back(line, [*own, *line.held])
            line.held.clear()
            line.returning = False
        self._again.extend(loose)
        return following

    def _reconnect(self, cause: AlipesError) -> Stream | None:
        """A new stream, as soon as the server is back; `None` if it is not in time, or nobody wants it any more."""
        if not isinstance(cause, (TransportError, NotReady, Internal)):
            return None
        _LOG.warning("the stream to %s ended (%s): connecting again", self._address, cause)
        deadline_s = time.monotonic() + self._patience.reconnect_s
        for attempt in itertools.count(1):
            if self._ending.is_set():
                return None
            try:
                return self._connect()
            except (TransportError, NotReady) as error:
                pause_s = self._patience.backoff.pause_s(attempt)
                if time.monotonic() + pause_s >= deadline_s:
                    _LOG.warning("%s does not come back: %s", self._address, error)
                    return None
                self._ending.wait(pause_s)
        return None

    def _give_up(self, lost: Iterable[Asked], cause: AlipesError, failed: list[Asked]) -> None:
        counts: dict[Line, int] = {}
        lost = [asked for asked in lost if not asked.replay]
        for asked in lost:
            counts[asked.line] = counts.get(asked.line, 0) + 1
        for asked in lost:
            if not asked.done:
                self._finish(asked, self._broken(asked.line, counts[asked.line], cause), failed)
        for line, count in counts.items():
            if line.sequence_id is not None:
                line.lost = self._broken(line, count, cause)

    def _broken(self, line: Line, count: int, cause: AlipesError) -> AlipesError:
        text = f"the stream to {self._address} ended ({cause})"
        if line.sequence_id is None:
            return TransportError(f"{text} before this request was answered; it can be sent again")
        more = "it did not come back in time: begin a new sequence with sequence_start=True" if line.keeps else _ADVICE
        return TransportError(
            f"{text}: of sequence {line.sequence_id}, {line.answered} updates were answered and {count} were on their "
            f"way; whether the server has taken those nobody can tell; {more}"
        )

    def _not_back(self, line: Line, cause: AlipesError) -> AlipesError:
        return TransportError(
            f"sequence {line.sequence_id} could not be brought back at {self._address} ({cause}): "
            "begin a new one with sequence_start=True"
        )

    def _fail_everything(self, error: AlipesError) -> None:
        failed: list[Asked] = []
        with self._lock:
            under_way = [*self._flying.values(), *self._again, *(row[2] for row in self._later)]
            self._flying.clear()
            self._again.clear()
            self._later.clear()
            self._stream = self._receiver = None
            self._give_up(under_way, error, failed)
            self._lock.notify_all()
        self._hand_over(failed)


def _advised(line: Line, error: AlipesError) -> AlipesError:
    """The error, with what to do where it says that the server has lost a sequence between two of its updates.

    Whoever had all of them answered when the server went is told no less than those whose updates went with it.
    """
    if line.keeps or not line.answered or not isinstance(error, InferError) or not LOST_STATE.search(str(error)):
        return error
    text = f"{error}; the server has lost its state after {line.answered} answered updates: {_ADVICE}"
    return type(error)(text, model=error.model, request_id=error.request_id)


def _again_of(error: AlipesError) -> AlipesError:
    """The same error for another request, with a traceback of its own."""
    return type(error)(*error.args)
