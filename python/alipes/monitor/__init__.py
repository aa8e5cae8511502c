"""What servers did, interval by interval: `from alipes.monitor import ServerMonitor`; and processes joined by queues.

Names are imported on first use, so that the process which watches pays only for what it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

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
    "ExceptionWrapper": "wrapper",
    "Pipeline": "pipeline",
    "PipelineProcess": "pipeline",
    "ServerMonitor": "monitor",
    "Throttle": "throttle",
    "Verdict": "judge",
    "read_rows": "files",
    "verdict": "judge",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
