"""What is recorded of a server, and how much of it may grow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MIB: Final = 1 << 20

# The first part of a run in which caches, pools and the heap reach their sizes. Faults come in any order, and sooner or
# later those meet that need the most memory together: in a run of 40 minutes the server's rose for 150 s, by 30 MiB,
# and was then flat. Two minutes are most of that.
_WARM_UP_SHARE: Final = 0.25
_WARM_UP_S: Final = 120.0


@dataclass(frozen=True)
class Series:
    """A column of the record.

    Attributes:
        name: Names the column.
        title: For people.
        unit: Of the values, as they are shown.
        scale: How many of what is recorded make one of the unit.
        may_rise: By how much the value may have risen from the end of the warm-up to the end of the run, in the unit;
            `None` if it may change as it likes, since the load and the machine decide on it.
    """

    name: str
    title: str
    unit: str
    scale: float = 1.0
    may_rise: float | None = None


def warm_up_s(run_s: float) -> float:
    """The length of the warm-up: a quarter of a run, two minutes at least."""
    return max(run_s * _WARM_UP_SHARE, _WARM_UP_S)


# The heap of a server that was flooded, and then again by another fault at the same time, is larger than before; a
# faulty version of a model is a process for a moment. None of this goes on.
SERIES: Final = (
    Series("server_bytes", "Memory of the server", "MiB", MIB, may_rise=32),
    Series("all_bytes", "Memory of server and workers", "MiB", MIB, may_rise=48),
    Series("descriptors", "Open descriptors, server and workers", "descriptors", may_rise=10),
    Series("threads", "Threads, server and workers", "threads", may_rise=4),
    Series("processes", "Processes, server and workers", "processes", may_rise=1),
    Series("http_median_s", "Latency over HTTP, median", "ms", 1e-3),
    Series("http_p99_s", "Latency over HTTP, 99th percentile", "ms", 1e-3),
    Series("grpc_median_s", "Latency over gRPC, median", "ms", 1e-3),
    Series("grpc_p99_s", "Latency over gRPC, 99th percentile", "ms", 1e-3),
)
