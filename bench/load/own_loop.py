"""Loads a server with the engine of `alipes.loadtest`, the same request over and over: run as a program of its own.

Prints the answered requests, the seconds that they took, the quantiles of their latencies, and the microseconds of
processor time of the threads that send for each of them, as JSON.
"""

import json
import sys
import time
from pathlib import Path

from alipes._core import LoadTestEngine, LoadTestRequests
from alipes.loadtest import Window

#: gRPC: one byte that says "not compressed", and four that give the length of the message.
PREFIX_BYTES = 5
JSON_TYPE = "application/json"


def main() -> None:
    """Runs one load: `wire port path body-file headers callers calls-per-connection threads seconds`."""
    wire, port, path, file, headers, *numbers, seconds = sys.argv[1:]
    callers, calls, threads = map(int, numbers)
    requests = prepare(wire, port, path, file, headers)
    engine = LoadTestEngine(requests, callers=callers, calls_per_connection=calls, threads=threads)
    window = _load(engine, float(seconds))
    if window.failed or not window.answers:
        raise SystemExit(f"{window.answers} answers, failures: {dict(window.failures)}")
    print(json.dumps(_figures(window)))


def prepare(wire: str, port: str, path: str, file: str, headers: str) -> LoadTestRequests:
    """A request as the bench has it, for the engine; headers are a document in JSON."""
    names, body = dict(json.loads(headers)), Path(file).read_bytes()
    content_type = names.pop("Content-Type", JSON_TYPE)
    own = [] if wire == "grpc" else list(names.items())
    requests = LoadTestRequests(f"127.0.0.1:{port}", wire, headers=own)
    if wire == "grpc":
        requests.call(path.rpartition("/")[2], body[PREFIX_BYTES:])
    else:
        requests.post(path, content_type, body)
    return requests


def _load(engine: LoadTestEngine, seconds: float) -> Window:
    begun = time.perf_counter()
    try:
        engine.wait(seconds)
        record, end = engine.cut(), time.perf_counter()
    finally:
        engine.stop(1.0)
    return Window.read(record, end - begun)


def _figures(window: Window) -> dict[str, float]:
    p50, p99 = (1000 * window.latencies.percentile_ms(percent) for percent in (50, 99))
    cpu_us = window.tester_cores * window.seconds / window.answers * 1e6
    return {"requests": window.answers, "duration_s": window.seconds, "p50_us": p50, "p99_us": p99, "cpu_us": cpu_us}


if __name__ == "__main__":
    main()
