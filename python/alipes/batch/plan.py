"""Who does what, decided before anything is sent: files, units of them, pieces of units, shards of pieces.

A *unit* is a file, or a part of a large one. A *piece* is some units whose results are one file: what is done is known
piece by piece. A *shard* is the pieces of one client. All of it is computed from what was found, and nothing else: the
same files, servers and clients give the same plan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Struct

from alipes.errors import ConfigError

__all__ = ["FORMAT", "Overlap", "Plan", "Shard", "Unit", "cut_pieces", "make_shards", "read_plan", "write_plan"]

FORMAT: Final = 1
"""Version of the file of a plan. A plan of another one is refused: its pieces may mean something else."""

_MOST_UNITS: Final = 256
"""Units of a piece: what is done again after a kill, and the rows whose results a client holds."""
_PIECES_EACH: Final = 8
"""Pieces of a shard, where there are units enough: clients that are ready earlier have some left to do."""
_MOST_SEQUENCE: Final = (1 << 31) - 1
"""Numbers of sequences stay below 2^31, which every model can hold, and are never 0, which is none."""


class Unit(NamedTuple):
    """A file, or a part of it.

    Attributes:
        file: Number of the file.
        start: Where the part begins.
        stop: Where it ends; -1 where the unit is the whole file.
    """

    file: int
    start: int
    stop: int


class Overlap(Struct, frozen=True):
    """How a time series is cut.

    Attributes:
        samples: Samples of an update.
        updates: Updates that are sent before the first one of a piece, whose answers are dropped.
        strides: Strides of an update: rows of its answer.
        channels: Sizes of the series without its last axis and those that are 1.
    """

    samples: int
    updates: int
    strides: int
    channels: tuple[int, ...]


class Plan(Struct, frozen=True, dict=True):
    """What is to be done.

    Attributes:
        format: Version of this document.
        made_by: The version of alipes that made it.
        model: The model.
        version: Its version; empty is the server's choice.
        form: What results are written as.
        folder: Where the files are, unless their names are absolute.
        files: Each with its name, its bytes and the time of its last change in nanoseconds.
        units: In the order of the files.
        pieces: The first unit of each piece, and the end.
        servers: Servers for which it was made.
        clients: Clients of each of them.
        stream: How a time series is cut; `None` for rows.
    """

    format: int
    made_by: str
    model: str
    version: str
    form: str
    folder: str
    files: list[tuple[str, int, int]]
    units: list[Unit]
    pieces: list[int]
    servers: int
    clients: int
    stream: Overlap | None = None

    @property
    def piece_count(self) -> int:
        """Number of the pieces."""
        return len(self.pieces) - 1

    def units_of(self, piece: int) -> Iterator[tuple[int, Unit]]:
        """The units of a piece, each with its number."""
        for number in range(self.pieces[piece], self.pieces[piece + 1]):
            yield number, self.units[number]

    def work_digest(self) -> str:
        """A digest of what is to be done, whichever client does it."""
        wanted = [self.model, self.version, self.form, self.folder, self.files, self.stream]
        return hashlib.sha256(msgspec.json.encode(wanted)).hexdigest()

    def digest(self) -> str:
        """A digest of all of it."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()

    @cached_property
    def _first_sequence(self) -> int:
        return int(self.work_digest()[:8], 16) % (_MOST_SEQUENCE - self.piece_count) + 1

    def sequence(self, piece: int) -> int:
        """The number of a piece's sequence: unlike those of its other pieces, and likely unlike those of other runs."""
        return self._first_sequence + piece

    def shards(self, servers: int | None = None, clients: int | None = None) -> list[Shard]:
        """The shards for so many servers and clients of each; for those of the plan by default."""
        return make_shards(self.piece_count, servers or self.servers, clients or self.clients)


class Shard(NamedTuple):
    """The pieces of one client.

    Attributes:
        number: Its number.
        server: The server that the client asks.
        client: Its number among the clients of this server.
        first: Its first piece.
        stop: The piece behind its last.
    """

    number: int
    server: int
    client: int
    first: int
    stop: int


def make_shards(pieces: int, servers: int, clients: int) -> list[Shard]:
    """Divides pieces among the clients of servers: neighbours to one client, one more or less to each."""
    count = servers * clients
    edges = [pieces * number // count for number in range(count + 1)]
    return [
        Shard(number, number // clients, number % clients, first, stop)
        for number, (first, stop) in enumerate(pairwise(edges))
    ]


def cut_pieces(sizes: Sequence[int], shards: int, most_bytes: int) -> list[int]:
    """The first unit of each piece, and the end.

    A piece has 256 units at most, and some bytes at most unless it is one unit; fewer units where clients would
    otherwise have less than eight pieces each.

    Args:
        sizes: Bytes of each unit.
        shards: Clients.
        most_bytes: Bytes of a piece.
    """
    most_units = max(1, min(_MOST_UNITS, len(sizes) // (shards * _PIECES_EACH)))
    edges = [0] if sizes else []
    gathered = 0
    for number, size in enumerate(sizes):
        if number > edges[-1] and (number - edges[-1] >= most_units or gathered + size > most_bytes):
            edges.append(number)
            gathered = 0
        gathered += size
    return [*edges, len(sizes)]


class _Saved(Struct, frozen=True):
    """The file of a plan."""

    digest: str
    plan: Plan


class _Head(Struct, frozen=True):
    format: int
    made_by: str = "another version"


class _SavedHead(Struct, frozen=True):
    """As much of the file as every version has."""

    plan: _Head


def write_plan(plan: Plan) -> bytes:
    """The content of its file."""
    return msgspec.json.encode(_Saved(plan.digest(), plan))


def read_plan(content: bytes, path: Any) -> Plan:
    """The plan of a file.

    Raises:
        ConfigError: If it is none, was changed, or was made by a version that plans otherwise.
    """
    kind: Literal["plan"] = "plan"
    try:
        head = msgspec.json.decode(content, type=_SavedHead).plan
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path} is no {kind} of a batch run: {error}", path=path) from error
    if head.format != FORMAT:
        raise ConfigError(
            f"{path} has format {head.format} of plans, made by alipes {head.made_by}, and this version reads format "
            f"{FORMAT}: finish the run with that version, or choose another folder",
            path=path,
        )
    try:
        saved = msgspec.json.decode(content, type=_Saved)
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path} is damaged: {error}", path=path) from error
    if saved.plan.digest() != saved.digest:
        raise ConfigError(f"{path} was changed since it was written: choose another folder for a new run", path=path)
    return saved.plan
