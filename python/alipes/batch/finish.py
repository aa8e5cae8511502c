"""The end of a run: what there is of it, in a manifest, a list of what was set aside, and the mark that it is whole."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import msgspec

from alipes.batch.folder import PieceReport, RunFolder, SetAside
from alipes.batch.formats.find import file_format
from alipes.batch.plan import Plan

__all__ = ["Manifest", "Success", "Summary", "finish", "row_places"]


class ManifestPiece(msgspec.Struct, frozen=True):
    """A file of results."""

    file: str
    rows: int
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """What there is, in the order of the inputs.

    Attributes:
        plan: Digest of the plan.
        model: The model.
        version: Its version.
        form: What the files are.
        outputs: Names of the columns.
        rows: Rows in all.
        pieces: The files.
    """

    plan: str
    model: str
    version: str
    form: str
    outputs: list[str]
    rows: int
    pieces: list[ManifestPiece]


class Success(msgspec.Struct, frozen=True):
    """The file that says that everything is done.

    Attributes:
        plan: Digest of the plan.
        files: Files of input.
        rows: Rows of results.
        set_aside: What could not be done.
        pieces: Files of results, and pieces without rows.
        bytes: Bytes of results.
        finished_s: When, in seconds since 1970.
    """

    plan: str
    files: int
    rows: int
    set_aside: int
    pieces: int
    bytes: int
    finished_s: float


@dataclass(frozen=True)
class Summary:
    """What a run came to.

    Attributes:
        folder: Its folder.
        files: Files of input.
        rows: Rows of results.
        set_aside: What could not be done; `set-aside.jsonl` has it with the reasons.
        pieces: Pieces.
        new_pieces: Those that this start has done.
        new_rows: Rows of them.
        seconds: How long the clients of this start worked.
        servers: Servers that it asked.
        cost: What they cost, where a price was passed.
        cost_per_data_hour: The same for an hour of data, where a price was passed and how many rows an hour has.
        server_logs: What servers have written that an executor had started and that ended before the run did.
    """

    folder: str
    files: int
    rows: int
    set_aside: int
    pieces: int
    new_pieces: int
    new_rows: int
    seconds: float
    servers: int
    cost: float | None = None
    cost_per_data_hour: float | None = None
    server_logs: list[str] = field(default_factory=list)

    @property
    def rows_per_s(self) -> float:
        """Rows that this start did in a second."""
        return self.new_rows / self.seconds if self.seconds > 0 else 0.0


def finish(folder: RunFolder, plan: Plan) -> Success:
    """Writes what says that a run is whole. Two that do it at the same time write the same."""
    reports = [folder.piece(piece) for piece in range(plan.piece_count)]
    places = row_places(plan, reports)
    digest = plan.digest()
    outputs = next((report.outputs for report in reports if report.rows), [])
    pieces = [ManifestPiece(one.file, one.rows, one.bytes, one.sha256) for one in reports if one.rows]
    rows = sum(report.rows for report in reports)
    folder.write_json(folder.manifest, Manifest(digest, plan.model, plan.version, plan.form, outputs, rows, pieces))
    aside = [_placed(one, places) for report in reports for one in report.set_aside]
    content = b"".join(msgspec.json.encode(one) + b"\n" for one in aside)
    folder.write_aside(folder.set_aside, lambda path: path.write_bytes(content))
    size = sum(report.bytes for report in reports)
    success = Success(digest, len(plan.files), rows, len(aside), plan.piece_count, size, round(time.time(), 3))
    folder.write_json(folder.success, success)
    return success


def row_places(plan: Plan, reports: list[PieceReport]) -> dict[int, int]:
    """By unit: the number of its first row within its file."""
    places: dict[int, int] = {}
    counted: dict[int, int] = {}
    for report in reports:
        for unit in report.units:
            file, start, _ = plan.units[unit.unit]
            by_rows = plan.stream is None and file_format(plan.files[file][0]).counts_rows
            places[unit.unit] = start if by_rows else counted.get(file, 0)
            counted[file] = counted.get(file, 0) + unit.rows
    return places


def _placed(one: SetAside, places: dict[int, int]) -> dict[str, Any]:
    row = None if one.row == -1 else places[one.unit] + one.row
    return {"file": one.file, "row": row, "reason": one.reason}
