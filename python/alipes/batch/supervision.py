"""The clients of a run, until every piece is done: by this start, or by another one of the same run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from alipes.batch.executors.base import ExecutorOptions
from alipes.batch.executors.find import open_executor
from alipes.batch.folder import RunFolder, Start
from alipes.batch.locks import PieceLocks
from alipes.batch.overview import status
from alipes.batch.plan import Plan
from alipes.batch.servers import RunServers
from alipes.errors import BatchError
from alipes.progress import Task

__all__ = ["supervise"]

_OTHERS_S: Final = 0.5


def supervise(  # noqa: PLR0913, PLR0917 - the parts of a run
    folder: RunFolder, plan: Plan, start: Start, up: RunServers, line: Task, name: str, options: ExecutorOptions
) -> None:
    """Runs the clients until every piece is done.

    Args:
        folder: The folder of the run.
        plan: Its plan.
        start: This start of it.
        up: The servers.
        line: Shows how far it is.
        name: Which engine runs the clients.
        options: What the engine needs to know.

    Raises:
        BatchError: If something is left that nobody does.
    """
    line.step(f"{plan.piece_count} pieces", plan.piece_count)
    shown = 0

    def watch() -> None:
        nonlocal shown
        if up.look():
            start.servers = up.addresses
            folder.write_start(start)
        if line.shown:
            now = status(folder.path)
            line.advance(now.pieces_done - shown)
            shown = now.pieces_done

    executor = open_executor(name, options, watch)
    try:
        while True:
            executor.run(folder, start, range(len(start.servers) * start.clients))
            missing = sorted(set(range(plan.piece_count)) - folder.done())
            if not missing:
                return
            if executor.failures:
                raise BatchError(_with_rest(executor.failures, len(missing), plan.piece_count))
            _await_others(folder, missing, line)
    finally:
        start.ended_s = time.time()
        with suppress(BatchError):
            folder.write_start(start)


def _with_rest(failures: Sequence[str], missing: int, pieces: int) -> str:
    reasons = list(dict.fromkeys(failures))
    more = f" (and {len(reasons) - 1} other reasons)" if len(reasons) > 1 else ""
    return f"{reasons[0]}{more}; {missing} of {pieces} pieces are missing, the others stay"


def _await_others(folder: RunFolder, missing: Sequence[int], line: Task) -> None:
    """Waits for another start that has the missing pieces, until one of them is free or all are done."""
    line.step("waits for another start of the same run")
    locks = PieceLocks(folder.locks)
    try:
        while not all(folder.is_done(piece) for piece in missing):
            for piece in missing:
                if not folder.is_done(piece) and locks.acquire(piece):
                    locks.release(piece)
                    return
            time.sleep(_OTHERS_S)
    finally:
        locks.close()
