"""Requests one by one, with their moments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from alipes._core import LoadTestRecord

__all__ = ["RequestLog"]


@dataclass(frozen=True)
class RequestLog:
    """Requests in the order in which they ended; moments are nanoseconds since the beginning of 1970.

    Attributes:
        source: Of several requests with weights the one that it belongs to, as a number from 0; shape `[N]`.
        request: Which of its source's requests it was; shape `[N]`.
        due_ns: When it was due; shape `[N]`.
        begun_ns: When its first byte was sent; shape `[N]`.
        end_ns: When it was over; shape `[N]`.
        failed: Whether it failed; shape `[N]`.
        responses: How many moments of responses it has; shape `[N]`.
        responses_ns: These moments, request by request; shape `[sum of responses]`.
        missing: Requests for which there was no room.
    """

    source: np.ndarray[Any, Any]
    request: np.ndarray[Any, Any]
    due_ns: np.ndarray[Any, Any]
    begun_ns: np.ndarray[Any, Any]
    end_ns: np.ndarray[Any, Any]
    failed: np.ndarray[Any, Any]
    responses: np.ndarray[Any, Any]
    responses_ns: np.ndarray[Any, Any]
    missing: int = 0

    @classmethod
    def read(cls, record: LoadTestRecord) -> Self:
        """A cut of the engine."""
        parts = record.parts or [record]
        logs = [part.log for part in parts]
        sources = [np.full(len(log["request"]), number, np.uint32) for number, log in enumerate(logs)]
        columns = {name: np.concatenate([log[name] for log in logs]) for name in logs[0]}
        moments = np.concatenate([part.responses_ns for part in parts])
        missing = sum(part.unlogged for part in parts)
        return cls(np.concatenate(sources), **columns, responses_ns=moments, missing=missing)

    @classmethod
    def merged(cls, parts: Iterable[Self]) -> Self:
        """One log in place of several."""
        known = list(parts)
        columns = [name for name in cls.__dataclass_fields__ if name != "missing"]
        joined = {name: np.concatenate([getattr(part, name) for part in known]) for name in columns}
        return cls(**joined, missing=sum(part.missing for part in known))

    def __len__(self) -> int:
        """How many requests there are."""
        return len(self.request)

    def responses_of(self, entry: int) -> np.ndarray[Any, Any]:
        """When the responses of one request came."""
        end = int(np.sum(self.responses[: entry + 1]))
        return self.responses_ns[end - int(self.responses[entry]) : end]
