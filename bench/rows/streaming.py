"""Rows on one gRPC stream: what sequences and steps cost, against a plain model on the same stream."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.fleet import Fleet
from bench.load import stream
from bench.models import streaming
from bench.paths import WORK
from bench.rows.load import RATE
from bench.rows.row import CPU_US, Better, Cell, Facts, Row, Sample, Target
from bench.servers.endpoint import Endpoint

IN_FLIGHT = 64


@dataclass(frozen=True)
class Asked:
    """A model, and the sequences that requests for it belong to in turn; 0 for none."""

    label: str
    model: str
    sequences: int = 0


@dataclass(frozen=True)
class StreamRow:
    """Models of one server, each asked on one stream."""

    facts: Facts
    contenders: tuple[Asked, ...]

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """A cell for each of them."""
        endpoint = fleet.alipes_on("streaming", streaming.write(WORK / "streaming"))
        return [
            Cell(asked.label, partial(_measure, asked, streaming.message(asked.model), endpoint))
            for asked in self.contenders
        ]


def streaming_rows() -> list[Row]:
    """The rows, in the order of the table."""
    return [_streaming(), _sequences(), _stateful(), _steps()]


def _streaming() -> Row:
    """A snapshotter and an averager around a light model cost a fifth of its rate at most."""
    plain, around = Asked("the model alone", "net"), Asked("between snapshotter and averager", "stream", 1)
    target = Target(around.label, plain.label, 0.8)
    facts = Facts("streaming", "gRPC, 1 stream, 1 sequence through a light model", RATE, Better.MORE, (target,))
    return StreamRow(facts, (around, plain))


def _sequences() -> Row:
    """A thousand live sequences cost as much a request as ten."""
    few, many = Asked("10 sequences", "stream", 10), Asked("1,000 sequences", "stream", 1000)
    target = Target(many.label, few.label, 1 / 1.2)
    facts = Facts("sequences", "gRPC, 1 stream, many sequences through a light model", RATE, Better.MORE, (target,))
    return StreamRow(facts, (many, few))


def _stateful() -> Row:
    """As `_sequences`, for a model behind the sequence batcher whose state the server keeps."""
    few, many = Asked("10 sequences", "sums", 10), Asked("1,000 sequences", "sums", 1000)
    target = Target(many.label, few.label, 1 / 1.2)
    facts = Facts("stateful", "gRPC, 1 stream, many sequences of a model with a state", RATE, Better.MORE, (target,))
    return StreamRow(facts, (many, few))


def _steps() -> Row:
    """Three steps cost three tenths of the rate of one model at most."""
    one, three = Asked("one model", "step"), Asked("an ensemble of three", "steps")
    target = Target(three.label, one.label, 0.7)
    facts = Facts("steps", "gRPC, 1 stream, models that give back what they are given", RATE, Better.MORE, (target,))
    return StreamRow(facts, (three, one))


def _measure(asked: Asked, message: Path, endpoint: Endpoint, seconds: float) -> Sample:
    cpu_before_s = endpoint.process.cpu_seconds()
    measurement = stream.post_sequences(endpoint.grpc_port, message, asked.sequences, IN_FLIGHT, seconds)
    cpu_us = (endpoint.process.cpu_seconds() - cpu_before_s) / measurement.requests * 1e6
    return Sample(measurement.rate, {**measurement.as_json(), CPU_US: cpu_us})
