"""The moments of single requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["LoggedRequests", "seconds_of"]


@dataclass(frozen=True, slots=True)
class LoggedRequests:
    """Requests that ended within some time, as the engine logged them; moments are nanoseconds since 1970.

    Attributes:
        columns: `request`, `begun_ns`, `failed`, `responses` and more, each of shape `[N]`.
        responses_ns: Moments of responses, request by request.
        missing: Requests for which the log had no room.
    """

    columns: Mapping[str, npt.NDArray[Any]]
    responses_ns: npt.NDArray[Any]
    missing: int = 0

    def documents(self) -> Iterator[dict[str, Any]]:
        """Each request that was answered, for JSON."""
        begun, failed, counts = (self.columns[name].tolist() for name in ("begun_ns", "failed", "responses"))
        ends = np.cumsum(self.columns["responses"]).tolist()
        moments = self.responses_ns.tolist()
        for at_ns, is_failed, count, end in zip(begun, failed, counts, ends, strict=True):
            if not is_failed:
                yield {"timestamp": at_ns, "response_timestamps": moments[end - count : end]}

    @property
    def span_ns(self) -> tuple[int, int]:
        """When the first of them was due, and when the last one was over; nothing without requests."""
        due, end = self.columns["due_ns"], self.columns["end_ns"]
        return (int(due.min()), int(end.max())) if len(due) else (0, 0)

    def ended(self, ends: npt.NDArray[np.bool_]) -> int:
        """How many requests were the last of their sequence; `ends` tells which of those that are sent are."""
        return int(ends[self.columns["request"]].sum())


def seconds_of(parts: Sequence[LoggedRequests]) -> float | None:
    """From the moment the first request was due until the last one was over; `None` where not all are known."""
    spans = [part.span_ns for part in parts if len(part.columns["request"])]
    if not spans or any(part.missing for part in parts):
        return None
    return (max(end for _, end in spans) - min(due for due, _ in spans)) / 1e9 or None
