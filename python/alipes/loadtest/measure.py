"""Loads a server, level by level, and measures it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from alipes._core import LoadTestEngine, LoadTestRequests
from alipes.client import Client, Tls
from alipes.client.endpoint import Endpoint
from alipes.errors import ConfigError
from alipes.loadtest.inputs import ModelRequests
from alipes.loadtest.level import Level, latency_ms
from alipes.loadtest.pace import Closed, Pace
from alipes.loadtest.spread import is_settled
from alipes.loadtest.window import Window

__all__ = ["Measuring", "Report", "Requests", "prepare", "run", "running"]

_GRACE_S: Final = 2.0
"""Longest wait for requests that are under way when a level ends."""
_AGREEING: Final = 3
"""Windows in a row that have to agree."""
_ONE_CALLER: Final = Closed(1)


class Requests(Protocol):
    """What is sent."""

    def fill(self, requests: LoadTestRequests, client: Client) -> None:
        """Adds the requests to those of a load."""


@dataclass(frozen=True, slots=True)
class Measuring:
    """How a level is measured.

    Attributes:
        window_s: Length of a window.
        windows: Most windows of a level.
        within: The share by which rate and latency may differ among the windows that settle it.
        percentile: The latency that has to settle; the mean by default.
        warm_up_s: What is sent first, and counts for nothing.
        count: Send so many requests instead, in a single window.
        threads: Threads that send.
        error_budget: Share of failed requests at which a level is given up; 1 never gives up.
    """

    window_s: float = 1.0
    windows: int = 10
    within: float = 0.1
    percentile: float | None = None
    warm_up_s: float = 0.5
    count: int | None = None
    threads: int = 1
    error_budget: float = 1.0

    def __post_init__(self) -> None:
        """Checks the numbers."""
        if not self.window_s > 0:
            raise ConfigError(f"window_s is {self.window_s}: expected seconds, above 0", key="window_s")
        if self.windows < 1:
            raise ConfigError(f"windows is {self.windows}: at least one is needed", key="windows")


@dataclass(frozen=True)
class Report:
    """What a load test showed.

    Attributes:
        address: Who was asked.
        levels: In the order in which they were measured.
    """

    address: str
    levels: Sequence[Level] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The figures, for JSON."""
        return {"address": self.address, "levels": [level.to_dict() for level in self.levels]}

    def to_pandas(self) -> Any:
        """One row for each level, as a `pandas.DataFrame`.

        Raises:
            ConfigError: If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ConfigError("tables need pandas: pip install pandas") from error
        return pd.DataFrame([level.to_dict() for level in self.levels])


def run(  # noqa: PLR0913  # what a load is, by name
    requests: Requests | str,
    paces: Pace | Sequence[Pace] = _ONE_CALLER,
    *,
    address: str = "http://localhost:8000",
    measuring: Measuring | None = None,
    headers: Mapping[str, str] | None = None,
    tls: Tls | None = None,
    each_window: Callable[[Pace, Sequence[Window]], None] = lambda pace, windows: None,
) -> Report:
    """Loads a server at one level after the other.

    Args:
        requests: What is sent; a model's name stands for random inputs of one row.
        paces: The levels.
        address: The server: `http://`, `https://`, `grpc://`, `grpcs://` or `host:port`, which is gRPC.
        measuring: How each level is measured.
        headers: Of each request.
        tls: How connections are encrypted.
        each_window: Called with the level's windows after each.

    Raises:
        ConfigError: If the requests cannot be made.
        AlipesError: If the server is not there, or does not know the model.
    """
    prepared = prepare(requests, address, headers, tls)
    levels = [paces] if not isinstance(paces, Sequence) else paces
    how = measuring or Measuring()
    return Report(str(Endpoint.parse(address, tls)), [_level(prepared, pace, how, each_window) for pace in levels])


def prepare(
    requests: Requests | str, address: str, headers: Mapping[str, str] | None = None, tls: Tls | None = None
) -> LoadTestRequests:
    """The requests as they travel to a server.

    Raises:
        ConfigError: If they cannot be made.
        AlipesError: If the server is not there, or does not know the model.
    """
    source = ModelRequests(requests) if isinstance(requests, str) else requests
    endpoint = Endpoint.parse(address, tls)
    names = dict(headers or {})
    with Client(address, headers=names, tls=tls) as client:
        security = endpoint.tls.read() if endpoint.tls is not None else None
        prepared = LoadTestRequests(endpoint.address, endpoint.wire, headers=list(names.items()), tls=security)
        source.fill(prepared, client)
    return prepared


def _level(
    requests: LoadTestRequests,
    pace: Pace,
    measuring: Measuring,
    each_window: Callable[[Pace, Sequence[Window]], None],
) -> Level:
    windows: list[Window] = []
    used, settled = 0, False
    with running(requests, pace, measuring) as engine:
        for window in _windows(engine, measuring):
            windows.append(window)
            each_window(pace, windows)
            settled = _agree(windows[-_AGREEING:], measuring)
            used = _AGREEING if settled else len(windows)
            if settled or _is_spent(window, measuring) or engine.is_done():
                break
    return Level(pace, windows, used, settled, measuring.threads, measuring.percentile)


@contextmanager
def running(requests: LoadTestRequests, pace: Pace, measuring: Measuring) -> Iterator[LoadTestEngine]:
    """A load that runs as long as the block."""
    engine = LoadTestEngine(requests, **pace.engine_options(), threads=measuring.threads, count=measuring.count)
    try:
        yield engine
    finally:
        engine.stop(_GRACE_S)


def _windows(engine: LoadTestEngine, measuring: Measuring) -> Iterator[Window]:
    if measuring.count is not None:
        begun = time.perf_counter()
        while not engine.wait(3600.0):
            pass
        yield Window.read(engine.cut(), time.perf_counter() - begun)
        return
    engine.wait(measuring.warm_up_s)
    engine.cut()
    begun = time.perf_counter()
    for _ in range(measuring.windows):
        engine.wait(measuring.window_s)
        record, end = engine.cut(), time.perf_counter()
        yield Window.read(record, end - begun)
        begun = end


def _agree(windows: Sequence[Window], measuring: Measuring) -> bool:
    if len(windows) < _AGREEING:
        return False
    latencies = [latency_ms(window, measuring.percentile) for window in windows]
    return is_settled([window.rate for window in windows], measuring.within) and is_settled(latencies, measuring.within)


def _is_spent(window: Window, measuring: Measuring) -> bool:
    return window.failed > measuring.error_budget * (window.failed + window.answers)
