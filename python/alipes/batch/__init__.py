"""Inference over more data than a script should hold: files in, files out, n servers and k clients of each.

`run` does everything, and goes on where it was left; `status` says how far it is, `merge` makes one file of the
results. `online` answers frames as they arrive. Names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alipes.lazily import lazily

__all__ = [
    "OnlineSummary",
    "Plan",
    "Shard",
    "Status",
    "Summary",
    "merge",
    "online",
    "places",
    "results",
    "run",
    "status",
]

if TYPE_CHECKING:
    from alipes.batch.finish import Summary
    from alipes.batch.frames.online import online
    from alipes.batch.frames.stream import OnlineSummary
    from alipes.batch.merging import merge, places, results
    from alipes.batch.overview import Status, status
    from alipes.batch.plan import Plan, Shard
    from alipes.batch.runner import run

_HOMES = {
    "OnlineSummary": "alipes.batch.frames.stream",
    "Plan": "alipes.batch.plan",
    "Shard": "alipes.batch.plan",
    "Status": "alipes.batch.overview",
    "Summary": "alipes.batch.finish",
    "merge": "alipes.batch.merging",
    "online": "alipes.batch.frames.online",
    "places": "alipes.batch.merging",
    "results": "alipes.batch.merging",
    "run": "alipes.batch.runner",
    "status": "alipes.batch.overview",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
