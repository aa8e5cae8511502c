"""The folder of a run: its plan, its pieces, its starts, and what its workers say of themselves."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from alipes.batch.aside import write_aside, write_file
from alipes.batch.plan import Plan, read_plan, write_plan
from alipes.errors import BatchError, ConfigError

__all__ = ["PieceReport", "RunFolder", "SetAside", "Start", "UnitReport", "WorkerReport"]

_PLAN: Final = "plan.json"


class SetAside(Struct, frozen=True):
    """What could not be done.

    Attributes:
        file: The file.
        unit: Number of the unit.
        row: The row of the unit; -1 is all of them.
        reason: Why.
    """

    file: str
    unit: int
    row: int
    reason: str


class UnitReport(Struct, frozen=True):
    """What a piece has of a unit.

    Attributes:
        unit: Its number.
        rows: Rows that were read of it.
        missing: Those that were set aside, by their numbers within the unit.
    """

    unit: int
    rows: int
    missing: list[int] = []


class PieceReport(Struct, frozen=True):
    """A piece that is done.

    Attributes:
        piece: Its number.
        file: Where its rows are, below the folder; empty where it has none.
        rows: How many.
        bytes: Of the file.
        sha256: Of its content.
        units: What it has of each unit, in their order.
        outputs: Names of its columns.
        set_aside: What could not be done.
    """

    piece: int
    file: str
    rows: int
    bytes: int
    sha256: str
    units: list[UnitReport]
    outputs: list[str] = []
    set_aside: list[SetAside] = []


class Start(Struct):
    """One start of a run.

    Attributes:
        number: Its number.
        servers: Addresses, with their protocols.
        clients: Clients of each server.
        in_flight: Requests that a client has under way.
        batch: Rows of a request; `None` leaves it to the model.
        timeout_s: The longest wait for an answer.
        reconnect_s: How long a client looks for a server that answers.
        headers: What servers ask for.
        tls_roots: Certificates to trust.
        begun_s: When it began, in seconds since 1970.
        ended_s: When it ended; 0 while it runs.
    """

    number: int
    servers: list[str]
    clients: int
    in_flight: int = 8
    batch: int | None = None
    timeout_s: float = 120.0
    reconnect_s: float = 60.0
    headers: dict[str, str] = {}
    tls_roots: str = ""
    begun_s: float = 0.0
    ended_s: float = 0.0


class WorkerReport(Struct):
    """What a worker says of itself.

    Attributes:
        start: The start that it belongs to.
        shard: Its shard.
        host: Its machine.
        pid: Its process.
        state: `runs`, `ended`, `stopped` where it was asked to, or `failed`.
        server: The server that it asks.
        pieces: Pieces that it has done.
        rows: Rows of them, and of the piece that it does.
        set_aside: What could not be done.
        read_bytes: Bytes of input.
        reason: Why it failed, or waits.
        begun_s: When it began.
        seen_s: When it said so.
    """

    start: int
    shard: int
    host: str
    pid: int
    state: str = "runs"
    server: str = ""
    pieces: int = 0
    rows: int = 0
    set_aside: int = 0
    read_bytes: int = 0
    reason: str = ""
    begun_s: float = 0.0
    seen_s: float = 0.0


class RunFolder:
    """The files of a run. Every file is written beside its place and renamed: it is whole, or not there."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Makes nothing yet."""
        self.path = Path(path)
        self.success = self.path / "_SUCCESS"
        self.manifest = self.path / "manifest.json"
        self.set_aside = self.path / "set-aside.jsonl"
        self.locks = self.path / ".locks"
        self.inputs = self.path / "inputs"
        self._pieces = self.path / "pieces"
        self._starts = self.path / "starts"
        self._workers = self.path / "workers"

    def prepare(self) -> None:
        """Makes the folder.

        Raises:
            ConfigError: If something else is there, or it cannot be made.
        """
        try:
            if self.path.exists() and not self.path.is_dir():
                raise ConfigError(f"{self.path} is a file: name a folder for the results", key="outputs")
            if self.path.exists() and not self.has_plan() and any(self.path.iterdir()):
                others = {entry.name for entry in self.path.iterdir() if not entry.name.startswith(".")}
                if others - {self.inputs.name, "pieces", "servers", "starts", "workers"}:
                    raise ConfigError(
                        f"{self.path} has files and no plan of a batch run: choose another folder", key="outputs"
                    )
            for folder in (self._pieces, self._starts, self._workers):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be used: {error.strerror or error}", key="outputs") from error

    def has_plan(self) -> bool:
        """Whether a plan is there."""
        return (self.path / _PLAN).is_file()

    def plan(self) -> Plan:
        """The plan.

        Raises:
            ConfigError: If there is none, or another version's.
        """
        try:
            content = (self.path / _PLAN).read_bytes()
        except OSError as error:
            raise ConfigError(
                f"{self.path} holds no batch run: {_PLAN} is not there", path=self.path / _PLAN
            ) from error
        return read_plan(content, self.path / _PLAN)

    def add_plan(self, plan: Plan) -> Plan:
        """Writes a plan, unless another start was quicker; returns the one that counts."""
        aside = self.path / f".{_PLAN}-{os.getpid()}"
        write_file(aside, lambda path: path.write_bytes(write_plan(plan)), self.path)
        try:
            os.link(aside, self.path / _PLAN)
        except FileExistsError:
            return self.plan()
        finally:
            aside.unlink(missing_ok=True)
        return plan

    def is_done(self, piece: int) -> bool:
        """Whether a piece is done."""
        return self._report(piece).exists()

    def done(self) -> set[int]:
        """The pieces that are done."""
        with os.scandir(self._pieces) as entries:
            return {int(entry.name[:-5]) for entry in entries if entry.name.endswith(".json") and entry.name[0] != "."}

    def piece_file(self, piece: int, form: str) -> Path:
        """Where the rows of a piece go."""
        return self._pieces / f"{piece:06}.{form}"

    def add_piece(self, report: PieceReport) -> None:
        """Notes that a piece is done; its rows are there already."""
        self.write_json(self._report(report.piece), report)

    def piece(self, number: int) -> PieceReport:
        """What is known of a piece that is done."""
        return msgspec.json.decode(self._report(number).read_bytes(), type=PieceReport)

    def remove_piece(self, report: PieceReport) -> None:
        """Forgets that a piece was done; its rows are written over."""
        self._report(report.piece).unlink(missing_ok=True)

    def add_start(self, start: Start) -> Start:
        """Writes a start under the next free number."""
        while True:
            start.number = max((int(file.stem) for file in self._starts.glob("[0-9]*.json")), default=0) + 1
            try:
                os.close(os.open(self._start(start.number), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            except FileExistsError:
                continue
            self.write_start(start)
            return start

    def write_start(self, start: Start) -> None:
        """Writes a start anew."""
        self.write_json(self._start(start.number), start, mode=0o600)

    def start(self, number: int | None = None) -> Start:
        """A start; the last one by default.

        Raises:
            ConfigError: If there is none.
        """
        for one in [number] if number else sorted(int(file.stem) for file in self._starts.glob("[0-9]*.json"))[::-1]:
            with suppress(OSError, msgspec.DecodeError):  # just being written
                return msgspec.json.decode(self._start(one).read_bytes(), type=Start)
        raise ConfigError(f"{self.path}: this run was not started yet: `alipes batch run` does it", path=self.path)

    def write_worker(self, report: WorkerReport) -> None:
        """Writes what a worker says of itself; what cannot be written is not worth an error."""
        report.seen_s = time.time()
        # Clients in containers have the same number of a process, and often the same host name.
        name = f"{report.start:04}-{report.shard:06}-{report.host}-{report.pid}-{report.begun_s:.0f}.json"
        with suppress(OSError, BatchError):
            self.write_json(self._workers / name, report)

    def workers(self) -> Iterator[WorkerReport]:
        """What workers have said of themselves, those of former starts too."""
        for file in sorted(self.worker_files()):
            with suppress(OSError, msgspec.DecodeError):
                yield msgspec.json.decode(file.read_bytes(), type=WorkerReport)

    def worker_files(self) -> Iterator[Path]:
        """Where workers say it."""
        return self._workers.glob("[0-9]*.json")

    def write_json(self, path: Path, value: Any, mode: int = 0o644) -> None:
        """Writes a document."""
        content = msgspec.json.format(msgspec.json.encode(value), indent=1 if path in (self.success,) else -1)

        def write(aside: Path) -> None:
            descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)

        self.write_aside(path, write)

    def write_aside(self, path: Path, write: Callable[[Path], Any]) -> None:
        """Writes a file beside its place, and renames it.

        Raises:
            BatchError: If the disk is full, or does not take it.
        """
        write_aside(path, write, self.path)

    def _report(self, piece: int) -> Path:
        return self._pieces / f"{piece:06}.json"

    def _start(self, number: int) -> Path:
        return self._starts / f"{number:04}.json"
