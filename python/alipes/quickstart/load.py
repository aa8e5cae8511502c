"""A closed loop of `alipes.loadtest` for some seconds: kept-alive connections, each with one request in flight."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from alipes._core import LoadTestEngine
from alipes.errors import TransportError
from alipes.loadtest import Posts, Window
from alipes.loadtest.measure import prepare, read_window

__all__ = ["CONNECTIONS", "LoadResult", "run"]

CONNECTIONS: Final = 32

_TICK_S: Final = 0.1
_GRACE_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load saw.

    Attributes:
        connections: How many sent.
        window: From the first request to the last answer; a refusal is a failure, which counts in no other figure.
    """

    connections: int
    window: Window

    @property
    def client_busy(self) -> float:
        """Share of the time that its thread used a core: near 1, it is the client that cannot do more."""
        return self.window.tester_cores

    def percentile_ms(self, percent: float) -> float:
        """The latency that this percentage of the good answers did not exceed; NaN without any."""
        return self.window.latencies.percentile_ms(percent)


def run(
    address: str,
    posts: Posts,
    seconds: float,
    connections: int = CONNECTIONS,
    tick: Callable[[float], None] = lambda elapsed_s: None,
) -> LoadResult:
    """Sends the requests round and round until the time is up, and waits for the last answers.

    Args:
        address: `host:port` of the HTTP endpoint.
        posts: What is sent.
        seconds: How long new requests are sent.
        connections: How many connections send, each one request at a time.
        tick: Called now and then with the seconds elapsed.

    Raises:
        TransportError: If nothing but failures comes any more.
    """
    begun, parts = time.perf_counter(), list[Window]()
    with _loading(address, posts, connections) as engine:
        while (elapsed := time.perf_counter() - begun) < seconds:
            tick(elapsed)
            part_begun = time.perf_counter()
            engine.wait(min(_TICK_S, seconds - elapsed))
            parts.append(read_window(engine, part_begun))
            if parts[-1].failures and not parts[-1].answers:
                raise TransportError(next(iter(parts[-1].failures)))
        part_begun = time.perf_counter()
        engine.stop(_GRACE_S)
        parts.append(read_window(engine, part_begun))
    return LoadResult(connections, Window.merged(parts))


@contextmanager
def _loading(address: str, posts: Posts, connections: int) -> Iterator[LoadTestEngine]:
    engine = LoadTestEngine(prepare(posts, f"http://{address}"), callers=connections)
    try:
        yield engine
    finally:
        # Who leaves in the middle waits for no answer.
        engine.stop(0)
