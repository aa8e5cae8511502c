"""Drives the project's own load tool for gRPC streams, `stream-load`, which checks every response."""

import json
from pathlib import Path

from bench.load.tool import LoadFailed, Measurement, run
from bench.paths import compiled
from bench.work import STREAM, Work

#: How the tool is told of requests that have one response each, whatever its value.
ANY = "any"


def post(port: int, work: Work, in_flight: int, duration_s: float) -> Measurement:
    """Keeps a number of requests under way on one stream of one connection.

    Args:
        port: Where the server listens.
        work: What is sent.
        in_flight: Requests under way at any time.
        duration_s: How long requests are sent, in seconds; the last ones are waited for.

    Returns:
        Requests, each with all of its responses; a request's time ends with its last response.

    Raises:
        LoadFailed: If a response was missing, wrong, out of order or too many.
    """
    return _post([port, work.message_file, work.responses if work.form == STREAM else ANY], in_flight, duration_s)


def post_sequences(port: int, message: Path, sequences: int, in_flight: int, duration_s: float) -> Measurement:
    """Keeps a number of requests with one response each under way, that belong to sequences in turn.

    Args:
        port: Where the server listens.
        message: A file with a request that says nothing of sequences.
        sequences: How many there are; 0 where requests belong to none.
        in_flight: Requests under way at any time.
        duration_s: How long requests are sent, in seconds; the last ones are waited for.

    Raises:
        LoadFailed: If a response was missing, an error, out of order or too many.
    """
    return _post([port, message, ANY], in_flight, duration_s, *([sequences] if sequences else []))


def _post(what: list[object], in_flight: int, duration_s: float, *more: int) -> Measurement:
    numbers = [*what, in_flight, round(duration_s * 1000), *more]
    command = [str(compiled("stream-load")), *map(str, numbers)]
    try:
        figures = json.loads(run(command, duration_s, interrupt=False))
    except json.JSONDecodeError as error:
        raise LoadFailed(f"stream-load printed no figures: {error}") from error
    return Measurement(
        requests=figures["requests"],
        duration_s=figures["duration_us"] / 1e6,
        p50_us=figures["p50_us"],
        p99_us=figures["p99_us"],
    )
