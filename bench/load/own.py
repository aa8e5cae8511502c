"""Drives the engine of `alipes.loadtest`: HTTP/1.1 and gRPC, a closed loop of callers or an open loop."""

import json

from bench.load.calls import figures
from bench.load.h2load import Streams
from bench.load.tool import Measurement
from bench.load.wrk import Request


def post(port: int, request: Request, streams: Streams, duration_s: float, wire: str) -> tuple[Measurement, float]:
    """Sends a request over and over.

    Args:
        port: Where the server listens.
        request: What is sent.
        streams: How many requests are in flight.
        duration_s: How long, in seconds.
        wire: `http` or `grpc`.

    Returns:
        The figures, and the microseconds of processor time that the threads that send used for each request.

    Raises:
        LoadFailed: If a request failed.
    """
    callers = streams.connections * streams.per_connection
    what = [*_request(port, request, wire), callers, streams.per_connection, streams.tool_threads, duration_s]
    seen = figures("bench.load.own_loop", what, duration_s)
    cpu_us = float(seen.pop("cpu_us"))
    return Measurement(**seen), cpu_us


def pace(port: int, request: Request, rate: float, duration_s: float, wire: str) -> dict[str, float]:
    """Sends a request at even spans.

    Args:
        port: Where the server listens.
        request: What is sent.
        rate: Requests in a second.
        duration_s: How long, in seconds.
        wire: `http` or `grpc`.

    Returns:
        Answers in a second (`rate`), by how many microseconds the sender was late (`late_p50_us`, `late_p99_us`), and
        how long answers took from the moments at which their requests were due (`p50_us`, `p99_us`).

    Raises:
        LoadFailed: If a request failed, or was never sent.
    """
    return figures("bench.load.open_loop", [*_request(port, request, wire), rate, duration_s], duration_s)


def _request(port: int, request: Request, wire: str) -> list[object]:
    return [wire, port, request.path, request.body_file, json.dumps(request.headers)]
