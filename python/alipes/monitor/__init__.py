"""What servers did, interval by interval: `from alipes.monitor import ServerMonitor`; and processes joined by queues.

Names are imported on first use, so that the process which watches pays only for what it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alipes.lazily import lazily

__all__ = [
    "ExceptionWrapper",
    "Pipeline",
    "PipelineProcess",
    "ServerMonitor",
    "Throttle",
    "Verdict",
    "read_rows",
    "verdict",
]

if TYPE_CHECKING:
    from alipes.monitor.files import read_rows
    from alipes.monitor.judge import Verdict, verdict
    from alipes.monitor.monitor import ServerMonitor
    from alipes.monitor.pipeline import Pipeline, PipelineProcess
    from alipes.monitor.throttle import Throttle
    from alipes.monitor.wrapper import ExceptionWrapper

_HOMES = {
    "ExceptionWrapper": "alipes.monitor.wrapper",
    "Pipeline": "alipes.monitor.pipeline",
    "PipelineProcess": "alipes.monitor.pipeline",
    "ServerMonitor": "alipes.monitor.monitor",
    "Throttle": "alipes.monitor.throttle",
    "Verdict": "alipes.monitor.judge",
    "read_rows": "alipes.monitor.files",
    "verdict": "alipes.monitor.judge",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
