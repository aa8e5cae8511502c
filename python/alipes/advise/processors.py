"""How much of the processors a server uses itself, and its machine in all, between two readings of its metrics."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from alipes.client.api_key import keyed_headers
from alipes.monitor.prometheus import Sample, samples

__all__ = ["ProcessorReading", "ProcessorUse", "use_between"]

_MAX_METRICS_BYTES: Final = 64 << 20
_WAIT_S: Final = 5.0

_MACHINE: Final = "nv_cpu_utilization"
_PROCESSORS: Final = "alipes_processors"
_WORKER: Final = "alipes_worker_cpu_seconds_total"
_PROCESSES: Final = ("process_cpu_seconds_total", "alipes_script_cpu_seconds_total", _WORKER)
"""Processor time of the server's process, of the script whose functions it serves, and of workers."""

Series = tuple[str, tuple[tuple[str, str], ...]]
"""A name with its labels."""


@dataclass(frozen=True)
class ProcessorReading:
    """What a server's metrics say of processors at one moment.

    Attributes:
        moment_s: When, on a clock that only goes forward.
        machine_share: Share of the machine's processors in use since somebody last read the metrics.
        processors: How many the server may use at a time; `None` where it does not say.
        seconds: Processor time of each of its processes so far.
    """

    moment_s: float
    machine_share: float | None = None
    processors: float | None = None
    seconds: Mapping[Series, float] = field(default_factory=dict)

    @classmethod
    def now(cls, metrics_url: str, headers: Mapping[str, str] | None) -> Self:
        """Reads the metrics; nothing is known where they are not to be had."""
        question = urllib.request.Request(metrics_url, headers=dict(keyed_headers(headers)))
        try:
            with urllib.request.urlopen(question, timeout=_WAIT_S) as answer:
                page = answer.read(_MAX_METRICS_BYTES).decode("utf-8", "replace")
        except (OSError, ValueError):
            return cls(time.monotonic())
        return cls.of(time.monotonic(), list(samples(page)))

    @classmethod
    def of(cls, moment_s: float, page: list[Sample]) -> Self:
        """What a page of metrics says."""
        single = {sample.name: sample.value for sample in page if sample.name in (_MACHINE, _PROCESSORS)}
        seconds = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for sample in page
            if sample.name in _PROCESSES
        }
        return cls(moment_s, single.get(_MACHINE), single.get(_PROCESSORS), seconds)


@dataclass(frozen=True, slots=True)
class ProcessorUse:
    """What was used between two readings.

    Attributes:
        machine_share: Share of the machine's processors in use, by whatever program; `None` where it is not known.
        own_share: Share of the processors that the server may use which its own processes used; `None` where it is not
            known, as with Triton.
        own: How many these were, on average, worker processes apart.
        by_model: How many the worker processes of a model used, on average; models without such processes are missing.
    """

    machine_share: float | None = None
    own_share: float | None = None
    own: float = 0.0
    by_model: Mapping[str, float] = field(default_factory=dict)

    def of_model(self, model: str) -> float:
        """How many processors a model used at most, on average."""
        return self.by_model.get(model, self.own)


def use_between(before: ProcessorReading, after: ProcessorReading) -> ProcessorUse:
    """What a server and its machine used between two readings of the metrics."""
    spent_s = after.moment_s - before.moment_s
    # Of a process that was not there before, or was started again, all of its time counts.
    used = {series: _increase(before.seconds.get(series, 0.0), now) / spent_s for series, now in after.seconds.items()}
    by_model: dict[str, float] = {}
    for (name, labels), processors in used.items():
        if name == _WORKER:
            model = dict(labels).get("model", "")
            by_model[model] = by_model.get(model, 0.0) + processors
    own_share = sum(used.values()) / after.processors if before.seconds and used and after.processors else None
    own = sum(processors for (name, _), processors in used.items() if name != _WORKER)
    return ProcessorUse(after.machine_share, own_share, own, by_model)


def _increase(before: float, now: float) -> float:
    return now - before if now >= before else now
