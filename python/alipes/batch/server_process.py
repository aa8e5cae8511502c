"""One server of a run, the same under every engine: `python -m alipes.batch.server_process FOLDER NUMBER`.

It announces its address in the folder, is started again where it ends, and goes with the run: once that says so, or
neither the run nor a client of it gives a sign of life. Exit code 0: the run is over; 85: it was asked to stop and may
be started again; 1: it cannot go on, with the reason on the error output.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from functools import partial
from types import FrameType
from typing import Final, NoReturn

from alipes.batch.launch import SILENT_S, LaunchFolder, ServerReport
from alipes.batch.worker import STOPPED
from alipes.errors import AlipesError
from alipes.serve.node import NodeServer

__all__ = ["main"]

_LOOK_S: Final = 0.5
_SIGNS_S: Final = 5.0


class _Signs:
    """Whether the run goes on."""

    def __init__(self, folder: LaunchFolder, parent: int | None) -> None:
        self._folder, self._parent = folder, parent
        self._signs = folder.signs()
        self._changed_s = self._looked_s = time.monotonic()

    def are_gone(self) -> bool:
        """Whether nobody uses the server any more."""
        if self._folder.has_ended() or (self._parent is not None and os.getppid() != self._parent):
            return True
        now_s = time.monotonic()
        if now_s - self._looked_s >= _SIGNS_S:
            self._looked_s = now_s
            if (signs := self._folder.signs()) != self._signs:
                self._signs, self._changed_s = signs, now_s
        return now_s - self._changed_s > SILENT_S


def _serve(folder: LaunchFolder, number: int, host: str, signs: _Signs) -> None:
    """Runs the server until it is no longer used.

    Raises:
        AlipesError: If it cannot start, or ends again and again.
    """

    def announce(address: str = "", reason: str = "") -> None:
        folder.report(ServerReport(number, address, socket.gethostname(), os.getpid(), reason))

    server: NodeServer | None = None
    try:
        repository, options = folder.recipe()
        server = NodeServer(repository, host, options, partial(folder.new_log, number))
        server.wait_until_ready()
        announce(f"grpc://{server.grpc}")
        while not signs.are_gone():
            if server.look():
                announce(f"grpc://{server.grpc}")
            time.sleep(_LOOK_S)
    except AlipesError as error:
        announce(reason=str(error))
        raise
    finally:
        if server is not None:
            server.stop()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a server; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m alipes.batch.server_process", description="A server of a run.")
    parser.add_argument("folder", help="the folder of the servers")
    parser.add_argument("number", type=int, help="number of the server, from 0 on")
    parser.add_argument("--host", default="", help="name or address of this machine, for others")
    parser.add_argument("--parent", type=int, help="stop when this process is no longer the parent")
    words = parser.parse_args(argv)
    folder = LaunchFolder(words.folder)

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(0 if folder.has_ended() else STOPPED)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, leave)
    try:
        _serve(folder, words.number, words.host or socket.gethostname(), _Signs(folder, words.parent))
    except AlipesError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
