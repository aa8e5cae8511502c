"""Loads a server, level by level, and measures it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Protocol, TypeAlias

from alipes._core import LoadTestEngine, LoadTestRequests
from alipes.client import Client, Tls
from alipes.client.api_key import keyed_headers
from alipes.client.endpoint import Endpoint
from alipes.client.servers.addresses import Address, places, read_addresses
from alipes.errors import ConfigError
from alipes.loadtest.check import Check
from alipes.loadtest.checkers import Checkers
from alipes.loadtest.inputs import ModelRequests
from alipes.loadtest.interrupted import Interrupted, interrupts_held
from alipes.loadtest.level import Level, latency_ms
from alipes.loadtest.mix import Mixed, labels, read_shares, spread_over
from alipes.loadtest.pace import Closed, Pace
from alipes.loadtest.report import Report
from alipes.loadtest.spread import is_settled
from alipes.loadtest.window import Window

__all__ = ["Measuring", "Requests", "prepare", "read_window", "run", "running"]

_GRACE_S: Final = 2.0
"""Longest wait for requests that are under way when a level ends."""
_PART_S: Final = 1.0
"""How often a single window is read, so that its answers are checked while it runs."""
_AGREEING: Final = 3
"""Windows in a row that have to agree."""
_ONE_CALLER: Final = Closed(1)
Weighted: TypeAlias = Sequence[tuple[LoadTestRequests, float]]
"""Several kinds of requests, and how often each is sent beside the others."""


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
        check: How answers are checked; not at all by default.
        silence_s: With a count: the longest time without an answer, after which the level ends.
        timeout_s: Longest wait for an answer, after which the request has failed; `None` waits as long as it takes.
        log: Requests whose moments the engine keeps between two cuts, for `RequestLog`.
        ends_early: Whether a level ends when three windows in a row agree; otherwise it has all windows, from
            which its figures come.
    """

    window_s: float = 1.0
    windows: int = 10
    within: float = 0.1
    percentile: float | None = None
    warm_up_s: float = 0.5
    count: int | None = None
    threads: int = 1
    error_budget: float = 1.0
    check: Check | None = None
    silence_s: float = 30.0
    timeout_s: float | None = 60.0
    log: int = 0
    ends_early: bool = True

    def __post_init__(self) -> None:
        """Checks the numbers."""
        if not self.window_s > 0:
            raise ConfigError(f"window_s is {self.window_s}: expected seconds, above 0", key="window_s")
        if self.windows < 1:
            raise ConfigError(f"windows is {self.windows}: at least one is needed", key="windows")


def run(  # noqa: PLR0913  # what a load is, by name
    requests: Mixed,
    paces: Pace | Sequence[Pace] = _ONE_CALLER,
    *,
    address: Address = "http://localhost:8000",
    measuring: Measuring | None = None,
    headers: Mapping[str, str] | None = None,
    tls: Tls | None = None,
    each_window: Callable[[Pace, Sequence[Window]], None] = lambda pace, windows: None,
) -> Report:
    """Loads a server at one level after the other, and gives what it measured.

    A level is measured in windows, after a warm-up that counts for nothing. It ends when three windows in a row agree,
    when it had the most windows that `measuring` allows, or when a `count` of requests is answered.

    Args:
        requests: What is sent; a model's name stands for random inputs of one row. A list of shares, or of requests
            with their weights, is mixed: its shares are sent beside each other.
        paces: One level, or several: `Closed(8)` keeps eight requests in flight, `Open.at(200)` has 200 requests a
            second due, whatever the server does.
        address: The server: `http://`, `https://`, `grpc://`, `grpcs://` or `host:port`, which is gRPC. Several, as
            `Client` takes them, are sent equal parts of what names no server of its own, and counted each by itself.
        measuring: How each level is measured; by default up to ten windows of a second each.
        headers: Of each request.
        tls: How connections are encrypted.
        each_window: Called with the level and its windows after each window; of a `count`, which is one window, with
            its parts after each second.

    Returns:
        A report with one level for each pace, in their order. Failed requests are counted, and raise nothing.

    Raises:
        ConfigError: If the requests cannot be made.
        AlipesError: If the server is not there, or does not know the model.
        Interrupted: After Ctrl-C, with what was measured until then as its `result`.

    Units: spans in seconds, latencies in milliseconds, rates in requests per second: a request may have several rows.

    Examples:
        >>> report = run("double", [Closed(1), Closed(4)], address="localhost:8001", measuring=Measuring(count=200))
        >>> [(str(level.pace), level.result.answers, level.result.failed) for level in report.levels]
        [('1 in flight', 200, 0), ('4 in flight', 200, 0)]
        >>> latencies = report.levels[1].result.latencies
        >>> 0 < latencies.percentile_ms(50) <= latencies.percentile_ms(99) <= latencies.max_ms
        True
    """
    addresses = [place.address for place in places(read_addresses(address))]
    shares = spread_over(read_shares(requests), addresses)
    first = addresses[0]
    prepared = [(prepare(share.requests, share.address or first, headers, tls), share.weight) for share in shares]
    levels = [paces] if not isinstance(paces, Sequence) else paces
    how = measuring or Measuring()
    endpoints = ", ".join(str(Endpoint.parse(one, tls)) for one in addresses)
    measured: list[Level] = []
    report = Report(endpoints, measured, datetime.now(UTC))
    checkers = Checkers.of(shares, how.check, first, tls)
    way = _Way(prepared, how, checkers, each_window, labels(shares) if len(shares) > 1 else ())
    try:
        for pace in levels:
            way.level(pace, measured)
    except KeyboardInterrupt:
        raise Interrupted(report) from None
    return report


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
    if endpoint.wire == "http" and getattr(source, "stream", False):
        raise ConfigError(f"streams need gRPC: {address} is an address of HTTP", key="stream")
    names = keyed_headers(headers)
    with Client(address, headers=dict(names), api_key="", tls=tls) as client:
        security = endpoint.tls.read() if endpoint.tls is not None else None
        prepared = LoadTestRequests(endpoint.address, endpoint.wire, headers=names, tls=security)
        source.fill(prepared, client)
    return prepared


@dataclass(frozen=True)
class _Way:
    """How levels are measured."""

    requests: Weighted
    measuring: Measuring
    checkers: Checkers
    each_window: Callable[[Pace, Sequence[Window]], None]
    names: Sequence[str]

    def level(self, pace: Pace, into: list[Level]) -> None:
        """Measures a level, and adds it; also when it is interrupted, with the windows that it has then."""
        windows: list[Window] = []
        try:
            with running(self.requests, pace, self.measuring, self.checkers.samples) as engine:
                self._fill(windows, engine, pace)
        finally:
            if windows:
                into.append(replace(_judged(pace, windows, self.measuring), names=self.names))

    def _fill(self, windows: list[Window], engine: LoadTestEngine, pace: Pace) -> None:
        if self.measuring.count is not None:
            parts: list[Window] = []
            try:
                self._count(parts, engine, pace)
            finally:
                windows.append(Window.merged(parts))
            return
        begun = warmed_up(engine, self.measuring)
        while len(windows) < self.measuring.windows:
            try:
                engine.wait(self.measuring.window_s)
                begun = self._read(windows, engine, begun)
            except KeyboardInterrupt:
                if not windows:
                    self._read(windows, engine, begun)
                raise
            self.each_window(pace, windows)
            agrees = self.measuring.ends_early and _agree(pace, windows[-_AGREEING:], self.measuring)
            if agrees or _is_spent(windows[-1], self.measuring) or engine.is_done():
                return

    def _read(self, windows: list[Window], engine: LoadTestEngine, begun: float) -> float:
        """Adds the window that ends now, also where an interrupt comes meanwhile; gives its end."""
        with interrupts_held():
            end = time.perf_counter()
            windows.append(read_window(engine, begun, self.checkers))
        return end

    def _count(self, parts: list[Window], engine: LoadTestEngine, pace: Pace) -> None:
        """Reads parts until everything was answered, or nothing came for too long."""
        begun = last = time.perf_counter()
        is_done = False
        while not is_done and begun - last < self.measuring.silence_s:
            try:
                is_done = engine.wait(min(_PART_S, self.measuring.silence_s))
            finally:
                begun = self._read(parts, engine, begun)
            self.each_window(pace, parts)
            if parts[-1].answers or parts[-1].failed:
                last = begun


def warmed_up(engine: LoadTestEngine, measuring: Measuring) -> float:
    """When the first window begins: now, after the warm-up; without one, everything that is sent counts."""
    if measuring.warm_up_s > 0:
        engine.wait(measuring.warm_up_s)
        engine.cut()
    return time.perf_counter()


def read_window(engine: LoadTestEngine, begun: float, checkers: Checkers | None = None) -> Window:
    """What a load showed since its last cut, at this moment of `time.perf_counter`."""
    record = engine.cut()
    window = Window.read(record, time.perf_counter() - begun)
    return window if checkers is None else checkers.check(record, window)


def _judged(pace: Pace, windows: Sequence[Window], measuring: Measuring) -> Level:
    counted = _AGREEING if measuring.ends_early else len(windows)
    settled = _agree(pace, windows[-counted:], measuring)
    used = counted if settled else len(windows)
    return Level(pace, windows, used, settled, measuring.threads, measuring.percentile)


@contextmanager
def running(
    requests: LoadTestRequests | Weighted, pace: Pace, measuring: Measuring, samples: int = 0
) -> Iterator[LoadTestEngine]:
    """A load that runs as long as the block; of its answers each thread keeps so many samples between two cuts."""
    options = pace.engine_options()
    engine = LoadTestEngine(
        requests,
        **options,
        threads=measuring.threads,
        count=measuring.count,
        samples=samples,
        timeout_s=measuring.timeout_s,
        log=measuring.log,
    )
    try:
        yield engine
    finally:
        engine.stop(_GRACE_S)


def _agree(pace: Pace, windows: Sequence[Window], measuring: Measuring) -> bool:
    """Whether windows agree, of which there must be enough."""
    if len(windows) < _AGREEING:
        return False
    latencies = [latency_ms(window, measuring.percentile) for window in windows]
    # The rate of an open loop is that of its schedule; where the server falls behind, the latencies show it.
    rates = [window.rate for window in windows] if isinstance(pace, Closed) else [1.0]
    return is_settled(rates, measuring.within) and is_settled(latencies, measuring.within)


def _is_spent(window: Window, measuring: Measuring) -> bool:
    return window.failed > measuring.error_budget * (window.failed + window.answers)
