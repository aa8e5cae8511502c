"""What was measured in a stretch of time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from alipes.loadtest.histogram import Histogram
from alipes.loadtest.streams import Streams

if TYPE_CHECKING:
    from alipes._core import LoadTestRecord

__all__ = ["Window"]


@dataclass(frozen=True)
class Window:
    """What was measured in a stretch of time; only answers that came in it count.

    Attributes:
        seconds: Its length.
        latencies: From the moment a request was due until its answer was there.
        lateness: From the moment a request was due until the tester turned to it: the tester's own.
        queueing: From then until a connection was free.
        sending_ms: Mean time that sending took.
        waiting_ms: Mean time until the first byte of the answer.
        receiving_ms: Mean time that receiving took.
        failures: What went wrong, and how often.
        dropped: Requests that were due and never sent.
        tester_cores: Processor time of the tester for each second.
        received_bytes: Bytes of answers.
        checked: Answers that were checked.
        wrong: What was wrong with them, and how often.
        streams: What requests on streams showed; `None` without any.
        parts: Of several kinds of requests, what each showed; the tester's own time is in the first.
    """

    seconds: float
    latencies: Histogram
    lateness: Histogram
    queueing: Histogram
    sending_ms: float
    waiting_ms: float
    receiving_ms: float
    failures: Mapping[str, int] = field(default_factory=dict)
    dropped: int = 0
    tester_cores: float = 0.0
    received_bytes: int = 0
    checked: int = 0
    wrong: Mapping[str, int] = field(default_factory=dict)
    streams: Streams | None = None
    parts: tuple[Self, ...] = ()

    @classmethod
    def read(cls, record: LoadTestRecord, seconds: float) -> Self:
        """A cut of the engine."""
        answers = max(record.answers, 1)
        return cls(
            seconds,
            Histogram(*record.latencies),
            Histogram(*record.lateness),
            Histogram(*record.queueing),
            record.sending_ns / answers / 1e6,
            record.waiting_ns / answers / 1e6,
            record.receiving_ns / answers / 1e6,
            record.failures,
            record.dropped,
            record.busy_ns / 1e9 / seconds,
            record.received_bytes,
            streams=Streams.read(record),
            parts=tuple(cls.read(part, seconds) for part in record.parts),
        )

    @classmethod
    def merged(cls, windows: Iterable[Self]) -> Self:
        """One window in place of several."""
        parts = list(windows)
        answers = max(sum(part.answers for part in parts), 1)
        seconds = sum(part.seconds for part in parts)

        def mean(name: str) -> float:
            return sum(float(getattr(part, name)) * part.answers for part in parts) / answers

        failures: Counter[str] = Counter()
        wrong: Counter[str] = Counter()
        for part in parts:
            failures.update(part.failures)
            wrong.update(part.wrong)
        return cls(
            seconds,
            Histogram.merged(part.latencies for part in parts),
            Histogram.merged(part.lateness for part in parts),
            Histogram.merged(part.queueing for part in parts),
            mean("sending_ms"),
            mean("waiting_ms"),
            mean("receiving_ms"),
            dict(failures),
            sum(part.dropped for part in parts),
            sum(part.tester_cores * part.seconds for part in parts) / max(seconds, 1e-9),
            sum(part.received_bytes for part in parts),
            sum(part.checked for part in parts),
            dict(wrong),
            Streams.merged(part.streams for part in parts),
            tuple(cls.merged(of_one) for of_one in zip(*(part.parts for part in parts), strict=True)),
        )

    @property
    def answers(self) -> int:
        """Good answers."""
        return self.latencies.count

    @property
    def rate(self) -> float:
        """Good answers per second."""
        return self.answers / self.seconds

    @property
    def failed(self) -> int:
        """Requests that failed or were dropped."""
        return sum(self.failures.values()) + self.dropped
