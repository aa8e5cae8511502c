"""One client of a run, the same under every engine: `python -m alipes.batch.worker FOLDER SHARD`.

It does the pieces of its shard, then those that others have not begun. A killed client leaves whole pieces, and locks
that are free again. Exit code 0: nothing is left to do here; 85: it was asked to stop, and may be started again; 1:
it cannot go on, with the reason on the error output.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from alipes.batch.folder import PieceReport, RunFolder, WorkerReport
from alipes.batch.formats.find import FORMS
from alipes.batch.locks import PieceLocks
from alipes.batch.piece_work import PieceRows, PieceWork, Stopped, Trouble
from alipes.batch.rows import ModelRows, model_rows
from alipes.batch.sender import Sender, StreamSender, is_trouble, open_client, open_sender
from alipes.batch.stream_work import StreamWork
from alipes.client.signature import Signature
from alipes.errors import AlipesError, BatchError, ConfigError, DeadlineExceeded

__all__ = ["STOPPED", "Worker", "main"]

STOPPED: Final = 85
"""Exit code of a worker that was asked to stop. Source: HTCondor's `checkpoint_exit_code`, Slurm's and law's habit."""

_REPORT_S: Final = 0.5
_GRACE_S: Final = 10.0
"""How long a piece may go on after the signal to stop: engines allow thirty seconds and more."""
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 2.0
_MOST_TIMEOUTS: Final = 3
_HOPELESS_ROWS: Final = 16
"""Rows that all fail before one succeeds: then the model or the inputs are wrong, not a row."""


class Worker:
    """A client at work."""

    def __init__(self, folder: RunFolder, shard: int, start: int | None = None, parent: int | None = None) -> None:
        """Reads the plan.

        Args:
            folder: The folder of the run.
            shard: Which shard.
            start: Number of the start; the last one by default.
            parent: The process that has to live on, if any.

        Raises:
            ConfigError: If there is no plan, or no such shard.
        """
        self._folder, self._plan, self._start, self._parent = folder, folder.plan(), folder.start(start), parent
        shards = self._plan.shards(len(self._start.servers), self._start.clients)
        if not 0 <= shard < len(shards):
            raise ConfigError(f"there is no shard {shard}: this run has 0 to {len(shards) - 1}", key="shard")
        self._shard = shards[shard]
        self._stop_s = 0.0
        self._tries = 0
        self._sender: Sender | None = None
        self._rows: ModelRows | None = None
        self._signature: Signature | None = None
        self._good_rows = 0
        self._reported_s = 0.0
        self.report = WorkerReport(self._start.number, shard, socket.gethostname(), os.getpid(), begun_s=time.time())

    def stop(self) -> None:
        """Has it stop soon: after this piece, or in its middle where that takes long."""
        self._stop_s = self._stop_s or time.monotonic()

    def run(self) -> int:
        """Does what is to be done.

        Returns:
            The exit code.

        Raises:
            AlipesError: If it cannot go on.
        """
        self._say(now=True)
        locks = PieceLocks(self._folder.locks)
        try:
            for piece in self._pieces():
                if self._stopping():
                    break
                if not self._folder.is_done(piece) and locks.acquire(piece):
                    try:
                        if not self._folder.is_done(piece):
                            self._do(piece)
                    finally:
                        locks.release(piece)
            self.report.state = "stopped" if self._stopping() else "ended"
        except Stopped:
            self.report.state = "stopped"
        except BaseException as error:
            self.report.state, self.report.reason = "failed", str(error)
            raise
        finally:
            locks.close()
            self._hang_up()
            self._say(now=True)
        return STOPPED if self.report.state == "stopped" else 0

    def _pieces(self) -> Iterator[int]:
        """Its own pieces; then those of others, the last ones first, which they reach last."""
        own = range(self._shard.first, self._shard.stop)
        yield from own
        yield from (piece for piece in reversed(range(self._plan.piece_count)) if piece not in own)

    def _stopping(self) -> bool:
        return bool(self._stop_s) or (self._parent is not None and os.getppid() != self._parent)

    def _do(self, piece: int) -> None:
        """Does a piece, by whichever server answers."""
        first_trouble_s = 0.0
        timeouts = 0
        pause_s = _FIRST_PAUSE_S
        rows_before, read_before = self.report.rows, self.report.read_bytes
        while True:
            try:
                self._write(piece, self._work().do(piece))
                return
            except Trouble as trouble:
                self._hang_up()
                self.report.rows, self.report.read_bytes = rows_before, read_before
                now = time.monotonic()
                first_trouble_s = first_trouble_s or now
                timeouts += isinstance(trouble.error, DeadlineExceeded)
                if now - first_trouble_s > self._start.reconnect_s or timeouts >= _MOST_TIMEOUTS:
                    raise BatchError(
                        f"no server answers any more: {trouble.error}; start the same again when one does"
                    ) from trouble.error
                self.report.reason = f"waits for a server: {trouble.error}"
                self._tries += 1
                self._wait(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _learn(self, address: str) -> None:
        """Asks a server once what the model takes."""
        if self._rows is not None or self._signature is not None:
            return
        model, version = self._plan.model, self._plan.version
        with open_client(address, self._start) as client:
            if self._plan.stream is None:
                self._rows = model_rows(client, model, version, self._start.batch)
            else:
                self._signature = client.signature(model, version)

    def _work(self) -> PieceWork | StreamWork:
        """What does pieces, with a connection."""
        try:
            if self._sender is None:
                # A server that was started again may be elsewhere now.
                self._start = self._folder.start(self._start.number)
                servers = self._start.servers
                address = servers[(self._shard.server + self._tries) % len(servers)]
                self._learn(address)
                self._sender = open_sender(address, self._plan, self._start)
                self.report.server, self.report.reason = address, ""
        except AlipesError as error:
            if is_trouble(error):
                raise Trouble(error) from error
            raise
        if isinstance(self._sender, StreamSender) and self._plan.stream is not None:
            assert self._signature is not None
            return StreamWork(self._plan, self._signature, self._sender, self._start.in_flight, self._seen)
        assert self._rows is not None
        return PieceWork(self._plan, self._rows, self._sender, self._start.in_flight, self._seen)

    def _write(self, piece: int, found: PieceRows) -> None:
        self._good_rows += found.rows
        failed = sum(len(unit.missing) for unit in found.units)
        if not self._good_rows and failed >= _HOPELESS_ROWS:
            raise BatchError(
                f"the first {failed} rows all failed: {found.set_aside[0].reason}; nothing was written of them"
            )
        form, file = self._plan.form, ""
        size, digest = 0, ""
        if found.rows:
            path = self._folder.piece_file(piece, form)
            try:
                self._folder.write_aside(path, lambda aside: FORMS[form].write(aside, found.columns))
            except ValueError as error:
                raise BatchError(f"results cannot be written as {form}: {error}") from error
            file, size = f"{path.parent.name}/{path.name}", path.stat().st_size
            with path.open("rb") as content:
                digest = hashlib.file_digest(content, "sha256").hexdigest()
        names = list(found.columns)
        self._folder.add_piece(PieceReport(piece, file, found.rows, size, digest, found.units, names, found.set_aside))
        self.report.pieces += 1
        self.report.set_aside += len(found.set_aside)
        self._say()

    def _seen(self, rows: int, read_bytes: int) -> None:
        self.report.rows += rows
        self.report.read_bytes += read_bytes
        self._say()
        if self._stop_s and time.monotonic() - self._stop_s > _GRACE_S:
            raise Stopped

    def _wait(self, pause_s: float) -> None:
        self._say()
        time.sleep(pause_s)
        if self._stopping():
            raise Stopped

    def _hang_up(self) -> None:
        if self._sender is not None:
            with suppress(AlipesError):
                self._sender.cancel()
            self._sender = None

    def _say(self, *, now: bool = False) -> None:
        if now or time.monotonic() - self._reported_s >= _REPORT_S:
            self._reported_s = time.monotonic()
            self._folder.write_worker(self.report)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a worker; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m alipes.batch.worker", description="One client of a batch run.")
    parser.add_argument("folder", help="the folder of the run")
    parser.add_argument("shard", type=int, help="number of the shard, from 0 on")
    parser.add_argument("--start", type=int, help="number of the start; the last one by default")
    parser.add_argument("--parent", type=int, help="stop when this process is no longer the parent")
    words = parser.parse_args(argv)
    # Ctrl-C reaches everybody at the terminal: who started the run decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        worker = Worker(RunFolder(words.folder), words.shard, words.start, words.parent)
        signal.signal(signal.SIGTERM, lambda *_: worker.stop())
        return worker.run()
    except AlipesError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
