"""Load tests: how fast a server answers, and what it takes to see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alipes.lazily import lazily

if TYPE_CHECKING:
    from alipes.loadtest.check import Check
    from alipes.loadtest.compare import compare
    from alipes.loadtest.comparison import Candidate, Comparison
    from alipes.loadtest.histogram import Histogram
    from alipes.loadtest.inputs import ModelRequests, Posts
    from alipes.loadtest.interrupted import Interrupted
    from alipes.loadtest.level import Level
    from alipes.loadtest.measure import Measuring, run
    from alipes.loadtest.mix import Share
    from alipes.loadtest.pace import Closed, Open
    from alipes.loadtest.ratio import Ratio
    from alipes.loadtest.report import Report
    from alipes.loadtest.request_log import RequestLog
    from alipes.loadtest.sequences import Sequences
    from alipes.loadtest.shared_memory import SharedMemoryRequests
    from alipes.loadtest.spread import Interval
    from alipes.loadtest.streams import Streams
    from alipes.loadtest.window import Window

__all__ = [
    "Candidate", "Check", "Closed", "Comparison", "Histogram", "Interrupted", "Interval", "Level", "Measuring",
    "ModelRequests", "Open", "Posts", "Ratio", "Report", "RequestLog", "Sequences", "Share", "SharedMemoryRequests",
    "Streams", "Window", "compare", "run",
]  # fmt: skip

_HOMES = {
    "Candidate": "alipes.loadtest.comparison",
    "Check": "alipes.loadtest.check",
    "Closed": "alipes.loadtest.pace",
    "Comparison": "alipes.loadtest.comparison",
    "Histogram": "alipes.loadtest.histogram",
    "Interrupted": "alipes.loadtest.interrupted",
    "Interval": "alipes.loadtest.spread",
    "Level": "alipes.loadtest.level",
    "Measuring": "alipes.loadtest.measure",
    "ModelRequests": "alipes.loadtest.inputs",
    "Open": "alipes.loadtest.pace",
    "Posts": "alipes.loadtest.inputs",
    "Ratio": "alipes.loadtest.ratio",
    "Report": "alipes.loadtest.report",
    "RequestLog": "alipes.loadtest.request_log",
    "Sequences": "alipes.loadtest.sequences",
    "Share": "alipes.loadtest.mix",
    "SharedMemoryRequests": "alipes.loadtest.shared_memory",
    "Streams": "alipes.loadtest.streams",
    "Window": "alipes.loadtest.window",
    "compare": "alipes.loadtest.compare",
    "run": "alipes.loadtest.measure",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
