"""Pending requests, and their queues: responses leave a queue in the order of its requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any, TypeAlias

from alipes.client.inference.crop import Crop
from alipes.client.inference.reader import Tensor
from alipes.errors import AlipesError

__all__ = ["Outputs", "PendingRequest", "SequenceId", "SequenceQueue"]

SequenceId: TypeAlias = "int | str"
Outputs: TypeAlias = "dict[str, Any]"


class PendingRequest:
    """A request that was sent, or is about to be.

    Attributes:
        request_id: The caller's id.
        wire_id: The id on the wire, unique among the requests in flight.
        queue: The queue of its sequence.
        number: Position in the order in which requests were sent.
        tensors: Its tensors, for as long as it may have to be sent again.
        start: Whether its sequence begins here.
        end: Whether its sequence ends here.
        replay: Whether it only restores a state, so that its response is dropped.
        future: Receives the response; without one it goes to the callback or the queue of answers.
        crop: The part of the response that counts.
        named: Whether its outputs are returned by name, even a single one.
        sent_s: Time of the first send, on the monotonic clock.
        deadline_s: Time by which it has to be answered.
        limit_s: The caller's time-out in seconds, for messages.
        timeout_us: The longest wait in the server's queue; 0 is none.
        tries: Number of times it was sent.
        answers: Its outputs so far: one, or none or several from a decoupled model.
        error: The error it failed with.
        done: Whether it expects no more responses.
    """

    __slots__ = (
        "answers",
        "crop",
        "deadline_s",
        "done",
        "end",
        "error",
        "future",
        "limit_s",
        "named",
        "number",
        "queue",
        "replay",
        "request_id",
        "sent_s",
        "start",
        "tensors",
        "timeout_us",
        "tries",
        "wire_id",
    )

    def __init__(  # noqa: PLR0913 - the fields of a request
        self,
        request_id: SequenceId,
        queue: SequenceQueue,
        tensors: tuple[Tensor, ...],
        *,
        start: bool = False,
        end: bool = False,
        replay: bool = False,
        future: Future[Any] | None = None,
        crop: Crop | None = None,
    ) -> None:
        """Takes the caller's fields; the others are set when it is sent."""
        self.request_id = request_id
        self.named = False
        self.wire_id = ""
        self.queue = queue
        self.number = 0
        self.tensors = tensors
        self.start = start
        self.end = end
        self.replay = replay
        self.future = future
        self.crop = crop
        self.sent_s = 0.0
        self.deadline_s: float | None = None
        self.limit_s = 0.0
        self.timeout_us = 0
        self.tries = 0
        self.answers: list[Outputs] = []
        self.error: AlipesError | None = None
        self.done = False

    def own_tensors(self) -> None:
        """Copies the tensors: the caller may change them after the send, and the request may have to be sent again."""
        self.tensors = tuple((name, kind, shape, array.copy()) for name, kind, shape, array in self.tensors)


class SequenceQueue:
    """The requests of one sequence, or those without a sequence, in the order in which they were sent.

    Attributes:
        sequence_id: The sequence; `None` for requests without one.
        waiting: Requests whose responses have not left.
        updates: Tensors of the last answered updates, which restore a lost state.
        answered: Updates answered since the sequence began; more than `updates` holds where it dropped some.
        lost: The error that lost the server's state of this sequence.
        held: Requests that wait until the state is restored.
        recovering: Whether the state has to be restored before anything else is sent.
    """

    def __init__(self, sequence_id: SequenceId | None, checkpoint_size: int = 0, *, ordered: bool = True) -> None:
        """A queue for a sequence that keeps its last `checkpoint_size` updates."""
        self.sequence_id = sequence_id
        self.waiting: deque[PendingRequest] = deque()
        self.updates: deque[tuple[Tensor, ...]] = deque(maxlen=checkpoint_size)
        self.answered = 0
        self.lost: AlipesError | None = None
        self.held: deque[PendingRequest] = deque()
        self.recovering = False
        self._ordered = ordered

    @property
    def recoverable(self) -> bool:
        """Whether a lost state can be restored."""
        return bool(self.updates.maxlen)

    def leave(self, request: PendingRequest) -> Iterator[PendingRequest]:
        """The requests that may leave now that one is done."""
        if not self._ordered:
            self.waiting.remove(request)
            yield request
            return
        waiting = self.waiting
        while waiting and waiting[0].done:
            yield waiting.popleft()

    def note_answered(self, request: PendingRequest) -> None:
        """Records an answered update, which the server's state now includes."""
        if request.start:
            self.updates.clear()
            self.answered = 0
        self.updates.append(request.tensors)
        self.answered += 1

    def replay(self) -> list[PendingRequest]:
        """Requests that restore the state: the recorded updates, as a sequence that starts with the first of them."""
        return [
            PendingRequest(f"replay{number}", self, tensors, start=not number, replay=True)
            for number, tensors in enumerate(self.updates)
        ]
