"""Drives `h2load`: gRPC over HTTP/2, connections that each keep a number of streams busy."""

import re
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.load.tool import LoadFailed, Measurement, run
from bench.load.wrk import Request

#: The share of the expected answer bytes that must have come: streams that are cut off at the end may miss theirs.
COMPLETE_SHARE = 0.99


@dataclass(frozen=True)
class Streams:
    """How many requests are in flight, and who sends them."""

    connections: int
    #: Requests in flight on each connection.
    per_connection: int
    #: Threads of the tool: one, but where one cannot write what a server can read, or cannot read what it answers.
    tool_threads: int = 1


def post(
    port: int, request: Request, streams: Streams, duration_s: float, answer_bytes: int, *, latency: bool
) -> Measurement:
    """Sends a request over and over.

    Args:
        port: Where the server listens.
        request: What is sent.
        streams: How many requests are in flight.
        duration_s: How long, in seconds.
        answer_bytes: Bytes of a correct answer. A gRPC error comes with status 200 and no body, so the bytes that
            came back tell answers from errors.
        latency: Whether percentiles are wanted; they cost the tool a log line for each request.

    Raises:
        LoadFailed: If a request failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "requests"
        arguments = command(port, request, streams, duration_s)
        printed = run([*arguments, f"--log-file={log}"] if latency else arguments, duration_s, interrupt=False)
        requests, rate = _figures(printed, answer_bytes)
        p50, p99 = _percentiles(log) if latency else (0.0, 0.0)
    return Measurement(requests=requests, duration_s=requests / rate, p50_us=p50, p99_us=p99)


def command(port: int, request: Request, streams: Streams, duration_s: float) -> list[str]:
    """The command line of one run."""
    load = [f"-c{streams.connections}", f"-m{streams.per_connection}", f"-t{streams.tool_threads}"]
    options = [*load, f"-D{round(duration_s * 1000)}ms", "-d", str(request.body_file)]
    headers = [part for name, value in request.headers.items() for part in ("-H", f"{name.lower()}: {value}")]
    return ["h2load", *options, *headers, f"http://127.0.0.1:{port}{request.path}"]


def _figures(printed: str, answer_bytes: int) -> tuple[int, float]:
    requests, rate = _number(printed, r"(\d+) succeeded"), _number(printed, r"([\d.]+) req/s")
    failed = sum(_number(printed, rf"(\d+) {kind}") for kind in ("failed", "errored", "timeout"))
    data = _number(printed, r"\((\d+)\) data")
    if failed or not requests:
        raise LoadFailed(f"h2load: {failed:.0f} failures, {requests:.0f} successes")
    if data < COMPLETE_SHARE * requests * answer_bytes:
        raise LoadFailed(f"h2load: {data:.0f} bytes in {requests:.0f} answers, expected {answer_bytes} each")
    return int(requests), rate


def _number(printed: str, pattern: str) -> float:
    match = re.search(pattern, printed)
    if match is None:
        raise LoadFailed(f"h2load printed no {pattern!r}:\n{printed[-2000:]}")
    return float(match[1])


def _percentiles(log: Path) -> tuple[float, float]:
    """Median and 99th percentile in microseconds: the third column of the log."""
    times = [int(line.split("\t")[2]) for line in log.read_text().splitlines()]
    return statistics.median(times), statistics.quantiles(times, n=100)[98] if len(times) > 1 else times[0]
