"""What autoscalers read of a model: the requests that it has in it, and how long the first of them has waited."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from alipes.client import Client
from support.exposition import samples
from support.models import add_model, busy
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

Serve = Callable[..., ServerProcess]

STEPS = 6_000
"""About a second of work."""
REQUESTS = 'alipes_inference_concurrency{model="busy",version="1"}'
WAIT = 'alipes_inference_longest_wait_seconds{model="busy",version="1"}'


def test_requests_that_are_executed_and_that_wait_are_counted(repository: Path, serve: Serve) -> None:
    add_model(repository, "busy", busy())
    server = serve(repository, "--execution-threads=measured")

    def gauges() -> tuple[float, bool]:
        found = samples(server)
        return found[REQUESTS], found[WAIT] > 0

    def work() -> None:
        with Client(server.grpc) as client:
            client.infer("busy", {"STEPS": np.array([STEPS])})

    assert gauges() == (0, False)
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(work) for _ in range(4)]
        until(lambda: gauges() == (4, True), "four requests, of which three wait")
        first = samples(server)[WAIT]
        until(lambda: samples(server)[WAIT] > first, "the first of them waits longer")
        for call in calls:
            call.result(TIMEOUT_S)
    until(lambda: gauges() == (0, False), "none is left")
