"""The payload log: what a server pays for copies of one request of a hundred, and for a sink that is dead."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from bench.fleet import Fleet
from bench.load import wrk
from bench.load.tool import Measurement
from bench.models.repository import repository
from bench.rows.row import CPU_US, Better, Cell, Facts, Sample, Target
from bench.servers import alipes
from bench.servers.endpoint import Endpoint
from bench.servers.process import free_ports
from bench.work import JSON, work

SMALL = "mlp"
CONNECTIONS = 64
NONE = "no payload log"
SAMPLED = "1 % of the requests sent to a sink"
DEAD = "1 % of the requests for a sink that is not there"
#: The rate may fall to 0.98, and this is what bounds it: time of the processors.
COST = round(1 / 0.98, 3)
LATENCY = 1.1


class _Sink(BaseHTTPRequestHandler):
    """Takes events, over connections that stay."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Reads the event and answers nothing."""
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


@dataclass
class PayloadCostRow:
    """Processor time of the server: the sink's own would count in a rate, and belongs to another machine."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="payload_log",
            title=f"HTTP JSON, {CONNECTIONS} connections, payload log: the server's processors",
            unit="µs a request",
            better=Better.LESS,
            targets=(Target(SAMPLED, NONE, COST),),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """A server for each."""
        return [Cell(NONE, partial(_cost, ())), Cell(SAMPLED, _sampled)]


@dataclass
class PayloadLatencyRow:
    """99th percentile beside a sink that takes nothing."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="payload_log_dead",
            title=f"HTTP JSON, {CONNECTIONS} connections, payload log with a dead sink",
            unit="µs, 99th percentile",
            better=Better.LESS,
            targets=(Target(DEAD, NONE, LATENCY),),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """A server for each."""
        (nobody,) = free_ports(1)
        return [Cell(NONE, partial(_latency, ())), Cell(DEAD, partial(_latency, _flags(nobody)))]


def _flags(port: int) -> tuple[str, ...]:
    return (f"--payload-log-url=http://127.0.0.1:{port}/", "--payload-log-sample=0.01")


@contextmanager
def _sink() -> Iterator[int]:
    """The port of a sink that runs."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Sink) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def _sampled(seconds: float) -> Sample:
    with _sink() as port:
        return _cost(_flags(port), seconds)


def _cost(flags: tuple[str, ...], seconds: float) -> Sample:
    with _loaded(flags) as endpoint:
        before_s = endpoint.process.cpu_seconds()
        measurement = _load(endpoint, seconds)
        cost_us = (endpoint.process.cpu_seconds() - before_s) / measurement.requests * 1e6
    return Sample(cost_us, {**measurement.as_json(), CPU_US: cost_us})


def _latency(flags: tuple[str, ...], seconds: float) -> Sample:
    with _loaded(flags) as endpoint:
        measurement = _load(endpoint, seconds)
    return Sample(measurement.p99_us, dict(measurement.as_json()))


@contextmanager
def _loaded(flags: tuple[str, ...]) -> Iterator[Endpoint]:
    """A server that has been warmed up."""
    endpoint = alipes.start(repository(SMALL), "alipes_payloads", flags)
    with endpoint.process:
        endpoint.check(work(SMALL, JSON))
        _load(endpoint, 0.5)
        yield endpoint


def _load(endpoint: Endpoint, seconds: float) -> Measurement:
    return wrk.post(endpoint.http_port, work(SMALL, JSON), CONNECTIONS, seconds)
