"""Requests under way, and the lines in which they stand: answers leave a line in the order of its requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any, TypeAlias

from alipes.client.inference.crop import Crop
from alipes.client.inference.reader import Tensor
from alipes.errors import AlipesError

__all__ = ["Asked", "Line", "Outputs", "SequenceId"]

SequenceId: TypeAlias = "int | str"
Outputs: TypeAlias = "dict[str, Any]"


class Asked:
    """A request under way.

    Attributes:
        request_id: As its caller gave it.
        wire_id: The id that the server knows it by; no other request under way has it.
        line: Where it stands.
        number: Counts up in the order in which requests were sent.
        tensors: Its tensors, as long as it may have to be sent again.
        start: Whether its sequence begins here.
        end: Whether its sequence ends here.
        replay: Whether it only brings a state back: nobody waits for its answer.
        future: Who waits for its answer; without one it goes to the callback or the queue.
        crop: What of its answer counts.
        sent_s: When it was sent first, on the monotonic clock.
        deadline_s: When it has to be answered.
        limit_s: The seconds that its caller gave it, for messages.
        timeout_us: The longest wait in the server's queue; 0 is none.
        tries: How often it was sent.
        answers: Its outputs so far: one, or none or several from a decoupled model.
        error: Why it failed.
        done: Whether it needs no more answers.
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
        "line",
        "number",
        "replay",
        "request_id",
        "sent_s",
        "start",
        "tensors",
        "timeout_us",
        "tries",
        "wire_id",
    )

    def __init__(  # noqa: PLR0913 - what its caller says
        self,
        request_id: SequenceId,
        line: Line,
        tensors: tuple[Tensor, ...],
        *,
        start: bool = False,
        end: bool = False,
        replay: bool = False,
        future: Future[Any] | None = None,
        crop: Crop | None = None,
    ) -> None:
        """Takes what its caller says; the rest follows when it is sent."""
        self.request_id = request_id
        self.wire_id = ""
        self.line = line
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
        """Copies the tensors: the caller may change them once the request is sent, and it may have to be sent again."""
        self.tensors = tuple((name, kind, shape, array.copy()) for name, kind, shape, array in self.tensors)


class Line:
    """The requests of one sequence, or those that belong to none, in the order in which they were sent.

    Attributes:
        sequence_id: The sequence; `None` for requests that belong to none.
        waiting: Requests whose answers have not left.
        kept: Tensors of the last updates that were answered: what a lost state is brought back with.
        answered: Updates answered since the sequence began; more than `kept` where it has forgotten some.
        lost: Why the server's state of this sequence is not what it should be.
        held: Requests that wait until the state is back.
        returning: Whether the state has to be brought back before anything else is sent.
    """

    def __init__(self, sequence_id: SequenceId | None, keep: int = 0, *, ordered: bool = True) -> None:
        """A line for a sequence that keeps its last `keep` updates."""
        self.sequence_id = sequence_id
        self.waiting: deque[Asked] = deque()
        self.kept: deque[tuple[Tensor, ...]] = deque(maxlen=keep)
        self.answered = 0
        self.lost: AlipesError | None = None
        self.held: deque[Asked] = deque()
        self.returning = False
        self._ordered = ordered

    @property
    def keeps(self) -> bool:
        """Whether a lost state can be brought back."""
        return bool(self.kept.maxlen)

    def leave(self, asked: Asked) -> Iterator[Asked]:
        """The requests that may leave now that one is done."""
        if not self._ordered:
            self.waiting.remove(asked)
            yield asked
            return
        waiting = self.waiting
        while waiting and waiting[0].done:
            yield waiting.popleft()

    def note_answered(self, asked: Asked) -> None:
        """Keeps an update whose answer came: the server's state holds it now."""
        if asked.start:
            self.kept.clear()
            self.answered = 0
        self.kept.append(asked.tensors)
        self.answered += 1

    def replay(self) -> list[Asked]:
        """Requests that bring the state back: the kept updates, as a sequence that begins with the first of them."""
        return [
            Asked(f"replay{number}", self, tensors, start=not number, replay=True)
            for number, tensors in enumerate(self.kept)
        ]
