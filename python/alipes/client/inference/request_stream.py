"""A stream of requests to one model: they go out as they are made, and are answered in their order.

`StreamClient` is its face in our words, `InferenceClient` the one in those of hermes.
"""

from __future__ import annotations

import atexit
import itertools
import os
import random
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Protocol, Self

import numpy as np

from alipes.client.arguments import timeout_of
from alipes.client.inference.answer_source import AnswerSource
from alipes.client.inference.answers import Answers
from alipes.client.inference.clock import ProfilerClock
from alipes.client.inference.declared import DeclaredState, Inputs
from alipes.client.inference.discovery import Found
from alipes.client.inference.endpoints import GrpcEndpoints
from alipes.client.inference.link import Link
from alipes.client.inference.link_group import LinkGroup
from alipes.client.inference.pace import Pace
from alipes.client.inference.reader import Reading, Values
from alipes.client.inference.recovery import RecoveryPolicy
from alipes.client.inference.sequence_queue import PendingRequest, SequenceId, SequenceQueue
from alipes.client.inference.splitting import cut, spans, stream
from alipes.client.inference.stream import Stream, Target
from alipes.client.inference.transport import GrpcEndpoint
from alipes.client.inference.unread import AnswerFuture, UnreadFailures
from alipes.config.memory_limit import memory_limit_bytes
from alipes.datatypes import numpy_type
from alipes.errors import AlipesError, InvalidArgument, NotReady, Overloaded, TransportError

__all__ = ["HALF_OF_MEMORY", "MOST_IN_FLIGHT", "RequestReader", "RequestStream", "StreamSettings"]

MOST_IN_FLIGHT: Final = 1024
"""Default for the requests in flight before a send waits: more than any server executes at once."""

HALF_OF_MEMORY: Final = -1
"""Stands for half of the memory that this process may use: who reads all answers at once needs the other half."""

_LAST_IS_MARKED: Final[dict[str, bool | int | float | str]] = {"triton_enable_empty_final_response": True}
"""Asks a server to say which response of a request is its last one."""

_STREAMS: Final[weakref.WeakSet[RequestStream]] = weakref.WeakSet()

_ONE_REQUEST: Final = "; stream() sends each item of an array as a request of its own: one request is sent by submit()"


class RequestReader(Protocol):
    """Makes tensors of what a caller passes."""

    def read(self, x: Any, last: bool) -> Reading:
        """The tensors of one request; `last` is whether its sequence ends here."""


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """How a stream of requests behaves; `StreamClient` says what each setting does.

    Attributes:
        ordered: Whether answers are held back until those of earlier requests of their sequence are there.
        max_in_flight: Most requests in flight; `None` is no limit.
        max_unread_bytes: What unread answers may take of the memory; `None` is no limit.
        rate: Requests per second at most.
        timeout_s: A request that is not answered so many seconds after it was sent fails.
        checkpoint: Whether the client keeps the last updates of each sequence, or how many of them.
        profile: Whether latencies are counted.
        names_outputs: Whether a request with a dictionary of inputs is answered with one of outputs in any case;
            otherwise a model with one output answers with its array alone.
    """

    ordered: bool = True
    max_in_flight: int | None = MOST_IN_FLIGHT
    max_unread_bytes: int | None = HALF_OF_MEMORY
    rate: float | None = None
    timeout_s: float | None = None
    checkpoint: bool | int = False
    profile: bool = False
    names_outputs: bool = False


class RequestStream(AnswerSource):
    """Many requests at a time to one model of one server.

    Attributes:
        address: The server's gRPC endpoint, as the user wrote it.
        model_name: The model.
        model_version: Its version, a number.
        inputs: Plain inputs, by position or by name.
        states: Inputs that are streams, each with the shapes of its parts by `model/input`.
        num_states: Number of the named parts that updates are made of.
        callback: What is called with each answer.
        clock: Latencies, with `profile`.
        callback_q: Answers that were not read yet.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of a stream
        self,
        endpoint: GrpcEndpoint | GrpcEndpoints,
        model: str,
        found: Found,
        reader: RequestReader,
        recovery: RecoveryPolicy,
        callback: Callable[[Any, Any, Any], Any] | None,
        settings: StreamSettings,
    ) -> None:
        """Opens nothing yet.

        Args:
            endpoint: Where the server is, or where several are.
            model: The model's name.
            found: What is known of the model.
            reader: Makes tensors of what a caller passes.
            recovery: The recovery from failures.
            callback: Called with `(y, request_id, sequence_id)` for each answer.
            settings: Everything else.

        Raises:
            ValueError: If the size of a checkpoint is unknown.
        """
        signature = found.signature
        self.address, self.model_name, self.model_version = endpoint.address, model, found.version
        memory = signature.memory if signature.stateful else 0
        self._checkpoint_size = _checkpoint_size(settings.checkpoint, memory, model)
        self.inputs = Inputs(signature.inputs)
        self.states = [DeclaredState(state) for state in signature.states]
        self.num_states = signature.streams
        clock, failures = ProfilerClock() if settings.profile else None, UnreadFailures(model)
        super().__init__(callback, clock, settings.max_in_flight, len(signature.outputs) == 1, failures)
        half = memory_limit_bytes() // 2
        self._max_unread_bytes = half if settings.max_unread_bytes == HALF_OF_MEMORY else settings.max_unread_bytes
        self._memory = signature.memory
        self._stateful = signature.stateful
        self._reader = reader
        self._ordered, self._timeout_s = settings.ordered, settings.timeout_s
        self._names_outputs = settings.names_outputs
        self._pace = None if settings.rate is None else Pace(settings.rate)
        self._ids = itertools.count()
        self._queues: dict[SequenceId | None, SequenceQueue] = {}
        target = Target(model, str(found.version), _LAST_IS_MARKED if signature.decoupled else None)
        self._link: Link | LinkGroup
        if isinstance(endpoint, GrpcEndpoint):
            self._link = Link(endpoint.address, target, lambda: self._open_stream(endpoint), self._deliver, recovery)
        else:
            self._link = LinkGroup(
                endpoint, target, self._open_stream, self._deliver, recovery, ordered=settings.ordered
            )
        _STREAMS.add(self)

    @property
    def memory(self) -> int | None:
        """Updates after which the state of a sequence no longer depends on what was before; `None` if unknown."""
        return self._memory

    def __enter__(self) -> Self:
        """Opens the stream."""
        self._link.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Waits until everything is answered; after an exception, drops what is under way."""
        if error is None:
            self.close()
        else:
            self.cancel()

    def send(  # noqa: PLR0913 - what a request of a stream may say
        self,
        x: Values,
        request_id: SequenceId | None = None,
        sequence_id: SequenceId | None = None,
        sequence_start: bool = False,
        sequence_end: bool = False,
        *,
        timeout_s: float | None = None,
        timeout: float | None = None,
    ) -> None:
        """Sends a request and does not wait for its answer, which goes to the callback or to `get`.

        Args:
            x: One array, or an array by name: inputs by their names, streams by `model/input`.
            request_id: Comes back with the answer; a number that counts up where it is not given.
            sequence_id: The sequence that an update belongs to.
            sequence_start: Whether it begins here.
            sequence_end: Whether it ends here.
            timeout_s: The request fails when it is not answered in so many seconds.
            timeout: The same under its short name.

        Raises:
            ValueError: If something is missing or does not fit.
            Overloaded: If answers that nobody has read fill `max_unread_bytes`; a `RuntimeError`.
            TransportError: If the server cannot be reached, or the state of the sequence is lost; a `RuntimeError`.
        """
        self._check_room()
        limit_s = timeout_of(timeout_s, timeout)
        self._send(x, request_id, sequence_id, sequence_start, sequence_end, limit_s, None)

    def submit(  # noqa: PLR0913 - as `send`
        self,
        x: Values,
        request_id: SequenceId | None = None,
        sequence_id: SequenceId | None = None,
        sequence_start: bool = False,
        sequence_end: bool = False,
        *,
        timeout_s: float | None = None,
        timeout: float | None = None,
    ) -> Future[Any]:
        """Sends a request as `send` does; its answer goes to the future that is returned, and nowhere else.

        The future has `request_id` and `sequence_id` as attributes. `asyncio.wrap_future` makes it awaitable.
        """
        future = AnswerFuture(self._failures)
        limit_s = timeout_of(timeout_s, timeout)
        self._send(x, request_id, sequence_id, sequence_start, sequence_end, limit_s, future)
        return future

    def stream(
        self,
        x: Any,
        sequence_id: int = 1001,
        *,
        sequences: int = 1,
        overlap: int | None = None,
        ahead: int = 64,
        progress: bool = False,
    ) -> Iterator[Any]:
        """The answers to a whole stream, in the order of its updates.

        Several sequences at a time are served side by side. Each is given some updates before its own, so that the
        answers are those of a single sequence, bit for bit; what these updates answer is dropped.

        Args:
            x: Samples along the last axis, of any length; or a list of what `infer` takes, an update each.
            sequence_id: The first sequence; the others have the numbers behind it.
            sequences: Among how many sequences the stream is divided. Answers of all but the first wait until it is
                their turn.
            overlap: Updates that each sequence is given before its own; as many as the state depends on where this is
                known.
            ahead: Updates of each sequence that are under way at a time.
            progress: Whether a queue says how far it is, where there is a terminal or a notebook.

        Raises:
            ValueError: If the overlap of sequences is unknown.
        """
        if isinstance(x, np.ndarray) and self.states:
            updates = cut(x, self.states[0].tensor.shape[-1])
        elif np.ndim(x) == 0 and isinstance(x, np.ndarray | np.generic):
            raise InvalidArgument(f"x: expected a list of updates, got a number, {x}{_ONE_REQUEST}")
        else:
            updates = list(x)
        overlap = self._memory if overlap is None else overlap
        if overlap is None and sequences > 1:
            raise InvalidArgument(
                f'how many updates the state of model "{self.model_name}" depends on is unknown: pass overlap='
            )
        ids = itertools.count()

        def send(update: Any, number: int, start: bool, end: bool) -> Future[Any]:
            if not self._stateful:
                try:
                    return self.submit(update, next(ids))
                except InvalidArgument as error:
                    if isinstance(x, np.ndarray):
                        raise InvalidArgument(f"{error}{_ONE_REQUEST}", model=self.model_name) from error
                    raise
            return self.submit(update, next(ids), sequence_id + number, start, end)

        answers = stream(updates, spans(len(updates), sequences, overlap or 0), send, ahead)
        if not progress:
            return answers
        from alipes.progress import track

        return track(answers, f"streaming to {self.model_name}", len(updates))

    def warm_up(self, timeout_s: float | None = None) -> None:
        """Has one request of zeros answered: a model's first execution may take seconds, and others need not wait.

        A model of sequences is given one of its own for that, which ends at once.
        """
        specs = [*self.inputs, *(state.tensor for state in self.states)]
        zeros = {spec.name: np.zeros(spec.shape, numpy_type(spec.datatype) or object) for spec in specs}
        sequence_id = random.getrandbits(62) + 1 if self._stateful else None
        self.submit(zeros, "warm-up", sequence_id, self._stateful, self._stateful).result(timeout_s)

    def close(self) -> None:
        """Waits for all answers, then ends the stream; what `get` has not taken can still be taken.

        A line in the log says how many requests have failed and how often the callback has raised unread.

        Raises:
            RuntimeError: In a callback, which answers would wait for.
        """
        if self._link.receiving:
            raise RuntimeError(
                "close() waits for all responses, which a callback cannot do: call it elsewhere, or cancel()"
            )
        self._window.wait_empty(None)
        self._link.close()
        self._queues.clear()
        self._failures.report(self.callback_q.failures(), " yet (get() raises it)")

    def cancel(self) -> None:
        """Ends the stream at once: pending requests are not answered, and unread answers are dropped.

        A line in the log says how many failures were among them.
        """
        self._link.drop()
        self._failures.report(self.callback_q.failures(), " and dropped")
        self._window = self._window.emptied()
        self._queues.clear()
        self.callback_q.clear()
        self.callback_q.wake()

    def _send(  # noqa: PLR0913, PLR0917 - what `infer` takes
        self,
        x: Values,
        request_id: SequenceId | None,
        sequence_id: SequenceId | None,
        start: bool,
        end: bool,
        timeout_s: float | None,
        future: Future[Any] | None,
    ) -> None:
        queue = self._queue_of(sequence_id, start, end)
        tensors, crop = self._reader.read(x, end)
        if request_id is None:
            request_id = next(self._ids)
        request = PendingRequest(request_id, queue, tensors, start=start, end=end, future=future, crop=crop)
        request.named = self._names_outputs and isinstance(x, Mapping)
        if future is not None:
            future.request_id, future.sequence_id = request_id, sequence_id  # type: ignore[attr-defined]
        if self._pace is not None:
            self._pace.wait()
        self._window.enter(wait=not self._link.receiving)
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        if timeout_s is not None:
            request.limit_s, request.deadline_s = timeout_s, time.monotonic() + timeout_s
            # To a sequence this would be the wait for a slot, and lose an update in its midst.
            request.timeout_us = round(timeout_s * 1e6) if sequence_id is None else 0
        self.callback_q.request()
        try:
            self._link.send(request)
        except BaseException:
            self._window.leave(1)
            raise

    def _check_room(self) -> None:
        """Refuses a request whose answer would be one too many that nobody reads."""
        most, unread = self._max_unread_bytes, self.callback_q.unread_bytes
        if most is not None and unread >= most:
            raise Overloaded(
                f'{len(self.callback_q)} responses of model "{self.model_name}" are unread and take {unread} bytes; '
                f"the limit is {most} (max_unread_bytes): read them with get(), or give the client a callback that "
                "returns nothing; this request was not sent",
                model=self.model_name,
            )

    def _queue_of(self, sequence_id: SequenceId | None, start: bool, end: bool) -> SequenceQueue:
        """The queue of a request's sequence."""
        if self._stateful != (sequence_id is not None):
            raise InvalidArgument(
                f'model "{self.model_name}" keeps the state of sequences: give the sequence_id of each request'
                if self._stateful
                else f'model "{self.model_name}" keeps no state: it takes no sequence_id, got {sequence_id!r}',
                model=self.model_name,
            )
        queue = self._queues.get(sequence_id)
        if queue is None:
            queue = self._queues[sequence_id] = SequenceQueue(sequence_id, self._checkpoint_size, ordered=self._ordered)
        if end:
            self._queues.pop(sequence_id, None)
        return queue

    def _open_stream(self, endpoint: GrpcEndpoint) -> Stream:
        """A stream to a server that can answer."""
        stream = endpoint.stream()
        try:
            calls = endpoint.calls()
            try:
                ready = calls.is_ready(self.model_name, str(self.model_version))
            finally:
                calls.close()
        except AlipesError as error:
            stream.cancel()
            if isinstance(error, TransportError):
                raise
            raise NotReady(str(error), model=self.model_name) from error
        if not ready:
            stream.cancel()
            raise NotReady(f'model "{self.model_name}" is not ready at {endpoint.address}', model=self.model_name)
        self._failures.begin()
        return stream

    def _forked(self) -> None:
        """In a child process: the connections are the parent's."""
        self._link.forget()
        self._window = self._window.emptied()
        self._queues.clear()
        self.callback_q = Answers()
        self._failures.forget()


def _checkpoint_size(checkpoint: bool | int, memory: int | None, model: str) -> int:
    if not isinstance(checkpoint, bool):
        if checkpoint < 0:
            raise ValueError(f"checkpoint must be True, False or a number of updates, got {checkpoint}")
        return checkpoint
    if checkpoint and memory is None:
        raise ValueError(
            f'how many updates the state of model "{model}" depends on is unknown: pass checkpoint=<updates>'
        )
    return (memory or 0) if checkpoint else 0


def _drop_all() -> None:
    """At the interpreter's end: no thread is left waiting for a server."""
    for one in list(_STREAMS):
        one._link.drop()
        one._failures.report_all(one.callback_q.failures())


def _after_fork() -> None:
    for one in list(_STREAMS):
        one._forked()


atexit.register(_drop_all)
os.register_at_fork(after_in_child=_after_fork)
