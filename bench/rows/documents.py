"""Rows in which servers without a common protocol answer JSON documents that ask for the same."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from bench.document import Document
from bench.fleet import Fleet
from bench.load import wrk
from bench.rows.row import CPU_US, Cell, Facts, Sample
from bench.servers import programs
from bench.servers.endpoint import Endpoint
from bench.servers.programs import Program

#: The slowest of these servers need a second for the first answers on 64 connections, even in a warm-up.
LEAST_S = 2.0

#: Starts a contender's server for the row; None where it is not there.
Start = Callable[[Fleet, Document], Endpoint | None]


@dataclass(frozen=True)
class Posted:
    """A contender and what it is posted."""

    label: str
    document: Document
    start: Start


@dataclass(frozen=True)
class DocumentRow:
    """Contenders that answer documents, each on so many connections."""

    facts: Facts
    contenders: tuple[Posted, ...]
    connections: int

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """A cell for each contender that is there."""
        return [cell for one in self.contenders if (cell := document_cell(one, fleet, self.connections)) is not None]


def document_cell(contender: Posted, fleet: Fleet, connections: int) -> Cell | None:
    """A contender, started and checked; None where it is not there.

    Raises:
        WrongAnswer: If it answers something else.
    """
    endpoint = contender.start(fleet, contender.document)
    if endpoint is None:
        return None
    return measured_cell(contender.label, endpoint, contender.document, connections)


def measured_cell(label: str, endpoint: Endpoint, document: Document, connections: int) -> Cell:
    """A server that runs, checked, and the document that it is posted.

    Raises:
        WrongAnswer: If it answers something else.
    """
    document.check(endpoint.http_port)
    return Cell(label, partial(_measure, endpoint, document, connections))


def app(name: str, *flags: str) -> Start:
    """Starts `alipes serve` on a file of `bench/apps`."""
    return lambda fleet, document: fleet.of_row(programs.start_app(name, document, flags))


def program(peer: str, name: str, requirements: str | None = None) -> Start:
    """Starts a program of a peer."""
    found = Program(peer, name, requirements)

    def start(fleet: Fleet, document: Document) -> Endpoint | None:
        return fleet.peer_of_row(peer, found.environment, lambda folder: found.start(folder, document))

    return start


def _measure(endpoint: Endpoint, document: Document, connections: int, seconds: float) -> Sample:
    cpu_before_s = endpoint.process.cpu_seconds()
    measurement = wrk.post(endpoint.http_port, document, connections, max(seconds, LEAST_S))
    # Steadier than any rate where others use the machine too.
    cpu_us = (endpoint.process.cpu_seconds() - cpu_before_s) / measurement.requests * 1e6
    return Sample(measurement.rate, {**measurement.as_json(), CPU_US: cpu_us})
