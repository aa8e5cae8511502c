"""Drives the engine of `alipes.loadtest`: HTTP/1.1 and gRPC, a closed loop of callers."""

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
    what = [wire, port, request.path, request.body_file, json.dumps(request.headers), callers, streams.per_connection]
    seen = figures("bench.load.own_loop", [*what, duration_s], duration_s)
    cpu_us = float(seen.pop("cpu_us"))
    return Measurement(**seen), cpu_us
