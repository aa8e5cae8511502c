"""Loads a server with the engine of `alipes.loadtest` in an open loop, at even spans: run as a program of its own.

Prints the answers in a second, how late the engine was, and how long answers took from the moments at which requests
were due, as JSON.
"""

import json
import sys
import time

from alipes._core import LoadTestEngine
from alipes.loadtest import Open, Window

from bench.load.own_loop import prepare

#: Connections are opened meanwhile.
WARM_UP_S = 0.2


def main() -> None:
    """Runs one load: `wire port path body-file headers rate seconds`."""
    *request, rate, seconds = sys.argv[1:]
    engine = LoadTestEngine(prepare(*request), **Open.at(float(rate)).engine_options())
    try:
        engine.wait(WARM_UP_S)
        engine.cut()
        begun = time.perf_counter()
        engine.wait(float(seconds))
        window = Window.read(engine.cut(), time.perf_counter() - begun)
    finally:
        engine.stop(1.0)
    if window.failed or not window.answers:
        failures = {**window.failures, "never sent": window.dropped}
        raise SystemExit(f"{window.answers} answers, failures: {failures}")
    print(json.dumps(_figures(window)))


def _figures(window: Window) -> dict[str, float]:
    late, latency = window.lateness, window.latencies
    return {
        "rate": window.rate,
        **{f"late_p{percent}_us": 1000 * late.percentile_ms(percent) for percent in (50, 99)},
        **{f"p{percent}_us": 1000 * latency.percentile_ms(percent) for percent in (50, 99)},
    }


if __name__ == "__main__":
    main()
