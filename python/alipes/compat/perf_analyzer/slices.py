"""A short stretch of a window, and windows made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from alipes._core import LoadTestRecord
from alipes.compat.perf_analyzer.logged import LoggedRequests
from alipes.loadtest import Histogram, Window

__all__ = ["Slice", "Slicing", "joined"]


@dataclass(frozen=True, slots=True)
class Slice:
    """What one cut of the engine showed.

    Attributes:
        client: Its figures; its length is not known.
        responses: On streams.
        requests: Each request, where they are logged.
        sequences: Sequences that ended, where there are any.
    """

    client: Window
    responses: int | None = None
    requests: LoggedRequests | None = None
    sequences: int | None = None


@dataclass(frozen=True, slots=True)
class Slicing:
    """How cuts are read.

    Attributes:
        is_decoupled: The first response counts for the latency.
        streams: Requests go over streams.
        ends: Which of the requests that are sent in turn is the last of its sequence.
        logs: Each request is logged.
    """

    is_decoupled: bool = False
    streams: bool = False
    ends: npt.NDArray[np.bool_] | None = None
    logs: bool = False

    def read(self, record: LoadTestRecord) -> Slice:
        """A cut."""
        client = Window.read(record, 1.0)
        if self.is_decoupled:
            client = replace(client, latencies=Histogram(*record.first_responses))
        responses = record.responses if self.streams else None
        if not self.logs:
            return Slice(client, responses)
        requests = LoggedRequests(record.log, record.responses_ns, record.unlogged)
        return Slice(client, responses, requests, None if self.ends is None else requests.ended(self.ends))


def joined(slices: Sequence[Slice], seconds: float) -> Window:
    """The figures of a window of this length."""
    cores = sum(part.client.tester_cores for part in slices) / seconds
    return replace(Window.merged(part.client for part in slices), seconds=seconds, tester_cores=cores)
