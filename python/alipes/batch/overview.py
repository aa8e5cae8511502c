"""How far a run is, read from its folder: by the command that runs it, and by anybody else."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Final

from alipes.batch.folder import RunFolder, WorkerReport

__all__ = ["Status", "status"]

_SILENT_S: Final = 15.0
"""A client that has said nothing for so long is stuck, or gone."""


@dataclass(frozen=True)
class Status:
    """A run at this moment.

    Attributes:
        folder: Its folder.
        complete: Whether it is finished.
        pieces: Pieces in all.
        pieces_done: Those that are done.
        files: Files in all.
        rows: Rows that were done, by all starts.
        set_aside: What could not be done.
        rows_per_s: What the clients do now; 0 where none runs.
        remaining_s: Seconds that the rest takes at this pace; `None` where nobody knows.
        clients: What the clients of the last start say of themselves.
    """

    folder: str
    complete: bool
    pieces: int
    pieces_done: int
    files: int
    rows: int
    set_aside: int
    rows_per_s: float
    remaining_s: float | None
    clients: list[WorkerReport]

    @property
    def running(self) -> list[WorkerReport]:
        """Clients that are at work."""
        return [client for client in self.clients if client.state == "runs"]

    @property
    def reasons(self) -> list[str]:
        """Why clients failed, or wait; each reason once."""
        return list(dict.fromkeys(client.reason for client in self.clients if client.reason))


def status(folder: str | os.PathLike[str], now_s: float | None = None) -> Status:
    """How far a run is.

    Args:
        folder: Its folder.
        now_s: The time, in seconds since 1970.

    Raises:
        ConfigError: If there is no run in it.
    """
    place = RunFolder(folder)
    plan = place.plan()
    now_s = time.time() if now_s is None else now_s
    reports = list(place.workers())
    last = max((report.start for report in reports), default=0)
    clients = [_judged(report, now_s) for report in reports if report.start == last]
    running = [client for client in clients if client.state == "runs"]
    rate = sum(_per_s(client.rows, client) for client in running)
    piece_rate = sum(_per_s(client.pieces, client) for client in running)
    done = len(place.done())
    left = plan.piece_count - done
    return Status(
        str(folder),
        place.success.exists(),
        plan.piece_count,
        done,
        len(plan.files),
        sum(report.rows for report in reports),
        sum(report.set_aside for report in reports),
        rate,
        0.0 if not left else left / piece_rate if piece_rate else None,
        clients,
    )


def _per_s(amount: int, report: WorkerReport) -> float:
    passed_s = report.seen_s - report.begun_s
    return amount / passed_s if passed_s > 0 else 0.0


def _judged(report: WorkerReport, now_s: float) -> WorkerReport:
    if report.state == "runs" and now_s - report.seen_s > _SILENT_S:
        report.state = "silent"
        report.reason = report.reason or f"has said nothing for {now_s - report.seen_s:.0f} s"
    return report
