"""What requests on streams showed, each of which may have any number of responses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from alipes.loadtest.histogram import Histogram

if TYPE_CHECKING:
    from alipes._core import LoadTestRecord

__all__ = ["Streams"]


@dataclass(frozen=True)
class Streams:
    """What requests on streams showed.

    Attributes:
        responses: How many came to requests that did not fail; an empty one that only says that it is the last is none.
        first: From the moment a request was due until its first response was there.
        gaps: Between the responses of a request.
    """

    responses: int = 0
    first: Histogram = field(default_factory=Histogram)
    gaps: Histogram = field(default_factory=Histogram)

    @classmethod
    def read(cls, record: LoadTestRecord) -> Self | None:
        """A cut of the engine; `None` if no request went over a stream."""
        if record.responses is None:
            return None
        return cls(record.responses, Histogram(*record.first_responses), Histogram(*record.response_gaps))

    @classmethod
    def merged(cls, parts: Iterable[Self | None]) -> Self | None:
        """All that the parts saw."""
        known = [part for part in parts if part is not None]
        if not known:
            return None
        return cls(
            sum(part.responses for part in known),
            Histogram.merged(part.first for part in known),
            Histogram.merged(part.gaps for part in known),
        )
