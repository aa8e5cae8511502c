"""Load tests: how fast a server answers, and what it takes to see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alipes.lazily import lazily

if TYPE_CHECKING:
    from alipes.loadtest.histogram import Histogram
    from alipes.loadtest.inputs import ModelRequests, Posts
    from alipes.loadtest.level import Level
    from alipes.loadtest.measure import Measuring, Report, run
    from alipes.loadtest.pace import Closed, Open
    from alipes.loadtest.spread import Interval
    from alipes.loadtest.window import Window

__all__ = [
    "Closed", "Histogram", "Interval", "Level", "Measuring", "ModelRequests", "Open", "Posts", "Report", "Window",
    "run",
]  # fmt: skip

_HOMES = {
    "Closed": "alipes.loadtest.pace",
    "Histogram": "alipes.loadtest.histogram",
    "Interval": "alipes.loadtest.spread",
    "Level": "alipes.loadtest.level",
    "Measuring": "alipes.loadtest.measure",
    "ModelRequests": "alipes.loadtest.inputs",
    "Open": "alipes.loadtest.pace",
    "Posts": "alipes.loadtest.inputs",
    "Report": "alipes.loadtest.measure",
    "Window": "alipes.loadtest.window",
    "run": "alipes.loadtest.measure",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
