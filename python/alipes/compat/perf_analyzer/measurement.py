"""Measures one level: windows, until they agree."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any, Final, Protocol

from alipes._core import LoadTestEngine, LoadTestRequests
from alipes.compat.perf_analyzer.failures import Exit, Failed
from alipes.compat.perf_analyzer.level import AGREEING, MeasuredLevel, Outcome, agreement
from alipes.compat.perf_analyzer.logged import seconds_of
from alipes.compat.perf_analyzer.metrics import MetricsCollector
from alipes.compat.perf_analyzer.server_statistics import ServerStatistics, Snapshot
from alipes.compat.perf_analyzer.settings import Load, Measuring
from alipes.compat.perf_analyzer.slices import Slice, Slicing, joined
from alipes.compat.perf_analyzer.windows import MeasuredWindow, total

__all__ = ["LevelMeasurement", "Looks", "Watch"]

_GRACE_S: Final = 2.0
"""Longest wait for requests that are under way when a level ends."""
_SLICE_S: Final = 0.25
"""Time after which failures are looked for; windows that are counted in requests are no shorter."""
_LOOK_S: Final = 0.002
"""How exactly the end of a number of requests is noticed: their rate depends on it."""
_LOGGED: Final = 250_000
"""Requests of a slice whose moments are kept: a million each second."""
_DAY_S: Final = 86_400.0
_SAMPLES: Final = 1024
"""Answers in a slice that are checked, where it is known what they have to be."""
_FEWEST_CALLS: Final = 8
_MOST_CALLS: Final = 32
"""Calls on a connection of gRPC: servers take 100 or more."""


class Check(Protocol):
    """Looks at answers."""

    def __call__(self, samples: Sequence[tuple[int, bytes]]) -> str:
        """What is wrong with the first bad one; empty where all are good."""


class Watch(Protocol):
    """Is told of each window."""

    def __call__(self, windows: Sequence[MeasuredWindow]) -> None:
        """Takes the level's windows so far."""


@dataclass(frozen=True, slots=True)
class Looks:
    """What is looked at while a level runs.

    Attributes:
        statistics: Of the server.
        metrics: Of its GPUs.
        check: Compares answers.
        slicing: How cuts of the engine are read.
    """

    statistics: ServerStatistics | None = None
    metrics: MetricsCollector | None = None
    check: Check | None = None
    slicing: Slicing = field(default_factory=Slicing)


class LevelMeasurement:
    """Measures levels of load with the same requests."""

    def __init__(
        self,
        requests: LoadTestRequests,
        load: Load,
        measuring: Measuring,
        looks: Looks,
    ) -> None:
        """Takes what is sent, how it is measured, and what is looked at meanwhile."""
        self._requests = requests
        self._load = load
        self._measuring = measuring
        self._looks = looks
        self._is_interrupted = False

    def measure(self, value: float, watch: Watch) -> MeasuredLevel:
        """Measures a level.

        Raises:
            Failed: If several windows have no answer at all.
        """
        measuring, windows = self._measuring, list[MeasuredWindow]()
        try:
            if measuring.warm_up_requests:
                self._warm_up(value)
            with self._interrupts_noted():
                for window in self._windows(value):
                    windows.append(window)
                    if outcome := self._ended(windows, watch):
                        return MeasuredLevel(value, windows, *outcome)
        except KeyboardInterrupt:
            return MeasuredLevel(value, windows, "interrupted")
        if measuring.requests:
            return MeasuredLevel(value, windows, "over_limit" if self._is_above(windows) else "settled")
        return MeasuredLevel(value, windows, "rate_settled" if self._rate_agrees(windows) else "not_settled")

    @contextmanager
    def _interrupts_noted(self) -> Iterator[None]:
        """Inside, an interrupt ends the window that is being measured, wherever it comes; a second one ends the level.

        An exception in the middle of a window would lose what the window has measured.
        """

        def note(_number: int, _frame: FrameType | None) -> None:
            if self._is_interrupted:
                raise KeyboardInterrupt
            self._is_interrupted = True

        self._is_interrupted = False
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _ended(self, windows: Sequence[MeasuredWindow], watch: Watch) -> tuple[Outcome, str] | None:
        """How the level ends with these windows; `None` where it goes on."""
        last, measuring = windows[-1].client, self._measuring
        if last.failures:
            return "failed", next(iter(last.failures))
        if self._is_interrupted:
            return "interrupted", ""
        if not any(window.client.answers for window in windows[-AGREEING:]) and len(windows) >= min(
            AGREEING, measuring.most_windows
        ):
            raise Failed(
                "No valid requests recorded within time interval. Please use a larger time window.", Exit.OPTION
            )
        watch(windows)
        if measuring.requests:
            return None
        last_windows = windows[-AGREEING:]
        if len(last_windows) == AGREEING and all(self._is_above([window]) for window in last_windows):
            return "over_limit", ""
        rate, latency = agreement(windows, self._measuring)
        if not (rate and latency):
            return None
        return ("over_limit" if self._is_above(last_windows) else "settled"), ""

    def _is_above(self, windows: Sequence[MeasuredWindow]) -> bool:
        """Whether the latency of windows is above the limit."""
        limit_ms = self._load.latency_limit_ms
        return limit_ms > 0 and MeasuredWindow.merged(windows).latency_ms(self._measuring.percentile) > limit_ms

    def _rate_agrees(self, windows: Sequence[MeasuredWindow]) -> bool:
        """Whether an asynchronous load is good enough: its rates agree, and its latencies do not."""
        return bool(self._load.is_async) and agreement(windows, self._measuring)[0]

    def _windows(self, value: float) -> Iterator[MeasuredWindow]:
        """Windows one after the other: each begins where the last one ended."""
        measuring, seen = self._measuring, self._look()
        with self._running(value, measuring.requests or None) as engine:
            begun, begun_ns = time.perf_counter(), time.time_ns()
            for _ in range(1 if measuring.requests else measuring.most_windows):
                slices = self._slices(engine, begun)
                end, end_ns = time.perf_counter(), time.time_ns()
                after = self._look()
                server = None if seen is None or after is None else after - seen
                gpus = None if self._looks.metrics is None else self._looks.metrics.cut()
                requests = [part.requests for part in slices if part.requests is not None]
                # A number of requests is over before its end is noticed.
                exact = seconds_of(requests) if measuring.requests else None
                yield MeasuredWindow(
                    joined(slices, exact or end - begun),
                    server,
                    gpus,
                    total([part.responses for part in slices]),
                    total([part.sequences for part in slices]),
                    requests,
                    begun_ns,
                )
                begun, begun_ns, seen = end, end_ns, after

    def _slices(self, engine: LoadTestEngine, begun: float) -> list[Slice]:
        """A window in slices: it ends with its time or its count, with a failure, or with an interrupt."""
        measuring, slices, answers = self._measuring, list[Slice](), 0
        by_count = bool(measuring.counts or measuring.requests)
        while True:
            left_s = math.inf if by_count else measuring.interval_ms / 1e3 - (time.perf_counter() - begun)
            is_done = self._wait(engine, min(left_s, _SLICE_S), by_count)
            record = engine.cut()
            part = self._looks.slicing.read(record)
            if self._looks.check is not None and (wrong := self._looks.check(record.samples)):
                part = replace(part, client=replace(part.client, failures={wrong: 1}))
            slices.append(part)
            answers += part.client.answers
            counted = measuring.counts and answers >= measuring.window_requests
            if is_done or part.client.failures or counted or left_s <= _SLICE_S:
                return slices

    def _wait(self, engine: LoadTestEngine, seconds: float, is_exact: bool) -> bool:
        """Waits for a slice, and returns whether the load is over; `is_exact` notices its end at once."""
        until = time.perf_counter() + seconds
        while not self._is_interrupted and (left_s := until - time.perf_counter()) > 0:
            if engine.wait(min(left_s, _LOOK_S) if is_exact else left_s):
                return True
        return self._is_interrupted

    def _warm_up(self, value: float) -> None:
        with self._running(value, self._measuring.warm_up_requests) as engine:
            while not engine.wait(_SLICE_S):
                pass

    @contextmanager
    def _running(self, value: float, count: int | None) -> Iterator[LoadTestEngine]:
        samples = _SAMPLES if self._looks.check is not None else 0
        log = _LOGGED if self._looks.slicing.logs else 0
        engine = LoadTestEngine(self._requests, **self._pace(value), count=count, samples=samples, log=log)
        try:
            yield engine
        finally:
            engine.stop(_GRACE_S)

    def _pace(self, value: float) -> dict[str, Any]:
        load = self._load
        if load.mode == "concurrency":
            return _senders(int(value), load.most_threads)
        if load.mode == "periodic":
            return {"waves": (int(load.start), int(load.step), int(load.end), load.period)}
        if load.mode == "intervals":
            return {"intervals_s": list(load.intervals_s)}
        limit = {} if load.in_flight is None else {"in_flight": load.in_flight}
        return {"rates": [(_DAY_S, value, value)], "seed": 0 if load.poisson else None, **limit}

    def _look(self) -> Snapshot | None:
        return None if self._looks.statistics is None else self._looks.statistics.look()


def _senders(callers: int, most_threads: int) -> dict[str, int]:
    """Who sends: a quarter of the processors, the others are for the server, but two where there are so many.

    The second thread pays on two processors already: with one, the server has nothing to do while that one reads. With
    64 requests in flight the rate was 1.24 times as high over HTTP, 1.07 times over gRPC. There, calls share
    connections, of which each processor has one at least: the rate was 1.26 times as high with 32 calls on each of two
    as with 8 on each of eight (11/2026).
    """
    processors = os.cpu_count() or 1
    threads = min(most_threads, callers, max(processors // 4, min(processors, 2)))
    calls = min(max(callers // processors, _FEWEST_CALLS), _MOST_CALLS)
    return {"callers": callers, "threads": threads, "calls_per_connection": calls}
