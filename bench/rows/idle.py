"""Thousands of connections that say nothing: what they cost those that do, and what each costs in memory."""

import resource
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from bench.fleet import Fleet
from bench.load import wrk
from bench.models.repository import repository
from bench.rows.load import RATE
from bench.rows.row import Better, Cell, Facts, Sample, Target
from bench.servers import alipes
from bench.servers.endpoint import Endpoint
from bench.work import JSON, work

SMALL = "mlp"
BUSY_CONNECTIONS = 64
IDLE_CONNECTIONS = 5000
#: Descriptors of this process beside those connections.
OTHER_FILES = 200
ALONE = "busy connections, nothing else"
BESIDE = f"busy connections beside {IDLE_CONNECTIONS:,} idle ones"
KEPT_SHARE = 0.95
PER_CONNECTION = "resident memory for each idle connection"
REQUEST = b"GET /v2/health/live HTTP/1.1\r\nHost: idle\r\n\r\n"


@dataclass
class IdleRow:
    """Rate of the busy connections, without and with the idle ones."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="idle",
            title=f"HTTP JSON, {BUSY_CONNECTIONS} busy connections",
            unit=RATE,
            better=Better.MORE,
            targets=(Target(BESIDE, ALONE, KEPT_SHARE),),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """The same load twice."""
        endpoint = _endpoint(fleet)
        return [
            Cell(ALONE, lambda seconds: _rate(endpoint, seconds)),
            Cell(BESIDE, lambda seconds: _beside(endpoint, seconds)),
        ]


@dataclass
class IdleMemoryRow:
    """Memory that idle connections hold."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="idle_memory",
            title=f"{IDLE_CONNECTIONS:,} idle keep-alive connections",
            unit="bytes",
            better=Better.LESS,
            targets=(Target(PER_CONNECTION),),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """One reading, of a server of its own."""
        return [Cell(PER_CONNECTION, _memory)]


def _endpoint(fleet: Fleet) -> Endpoint:
    endpoint = fleet.alipes(SMALL)
    endpoint.check(work(SMALL, JSON))
    return endpoint


def _rate(endpoint: Endpoint, seconds: float) -> Sample:
    measurement = wrk.post(endpoint.http_port, work(SMALL, JSON), BUSY_CONNECTIONS, seconds)
    return Sample(measurement.rate, dict(measurement.as_json()))


def _beside(endpoint: Endpoint, seconds: float) -> Sample:
    with idle_connections(endpoint.http_port):
        return _rate(endpoint, seconds)


def _memory(seconds: float) -> Sample:
    # A server of its own: one that held connections before keeps their memory for the next.
    endpoint = alipes.start(repository(SMALL), name="alipes_idle")
    with endpoint.process:
        _rate(endpoint, seconds)
        before = endpoint.process.resident_bytes()
        with idle_connections(endpoint.http_port):
            held = endpoint.process.resident_bytes()
    return Sample((held - before) / IDLE_CONNECTIONS, {"before": before, "held": held})


@contextmanager
def idle_connections(port: int) -> Iterator[None]:
    """Keeps connections open that have each been answered once."""
    _allow_files(IDLE_CONNECTIONS + OTHER_FILES)
    with ExitStack() as stack:
        for _ in range(IDLE_CONNECTIONS):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            connection.sendall(REQUEST)
            if not connection.recv(4096).startswith(b"HTTP/1.1 200"):
                raise RuntimeError("the server does not answer")
        yield


def _allow_files(count: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
