"""A client that opens calls and resets them at once, on many connections, and connects again when it is cut off.

It is a process of its own, so that it floods as fast as the machine can, whatever the test does meanwhile.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from support.http2 import END_HEADERS, GOAWAY, HEADERS, Connection, frame, reset

_PATH: Final = b"/inference.GRPCInferenceService/ModelInfer"

# The first call names its headers; the others repeat them by their numbers, so that a call takes 28 bytes.
_FIRST: Final = b"\x83\x86" + b"".join(
    bytes([name, len(value)]) + value
    for name, value in ((0x44, _PATH), (0x41, b"localhost"), (0x5F, b"application/grpc"))
)
_AGAIN: Final = b"\x83\x86\xc0\xbf\xbe"

# Calls that are prepared: more than a server takes from one connection.
_CALLS: Final = 100_000
_CALLS_AT_ONCE: Final = 2000

# How long connections have to end by themselves: longer than a server holds one that it is going to close.
_LAST_S: Final = 3.0
# How often those that are left, and those that have come meanwhile, are cut off.
_CUT_OFF_EVERY_S: Final = 0.05


class Flooder:
    """Floods a server from an address for as long as the context lasts."""

    def __init__(self, address: str, source: str, connections: int) -> None:
        """Starts the process, which has so many connections at a time."""
        command = [sys.executable, "-m", "support.flooder", address, source, str(connections)]
        self._process = subprocess.Popen(
            command, cwd=Path(__file__).parents[1], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.calls: list[int] = []
        """Of each connection, in the order of their ends: the calls that the server says it has read."""

    def __enter__(self) -> Self:
        assert self._process.stdout is not None
        self._process.stdout.readline()  # it has connected
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        output, _ = self._process.communicate()
        if error is None:
            self.calls = json.loads(output)


class Flood:
    """The work of the process."""

    def __init__(self, address: str, source: str, stay_s: float | None = None) -> None:
        """Prepares what each connection sends; then it stays until the server closes it, or for so long at most."""
        self._stay_s = stay_s
        self._address, self._source = address, source
        self._stop = threading.Event()
        self._pieces = _pieces()
        self._calls: list[int] = []
        self._open: set[Connection] = set()

    def run(self, connections: int) -> None:
        """Prints a line once it floods, and at the end of its input what it has done."""
        threads = [threading.Thread(target=self._work) for _ in range(connections)]
        for thread in threads:
            thread.start()
        print("flooding", flush=True)
        sys.stdin.read()
        self._stop.set()
        self._end(threads)
        print(json.dumps(self._calls), flush=True)

    def _end(self, threads: Sequence[threading.Thread]) -> None:
        """Waits for the threads, and cuts off those that still send or wait: a server may read a flood very slowly."""
        until_s = time.monotonic() + _LAST_S
        for thread in threads:
            thread.join(max(0.0, until_s - time.monotonic()))
        while any(thread.is_alive() for thread in threads):
            for connection in tuple(self._open):
                with suppress(OSError):
                    connection.socket.shutdown(socket.SHUT_RDWR)
            time.sleep(_CUT_OFF_EVERY_S)

    def _work(self) -> None:
        while not self._stop.is_set():
            try:
                self.flood()
            except OSError:
                continue

    def flood(self) -> None:
        """Floods over one connection, until the server closes it or the work is over."""
        with Connection(self._address, source=self._source) as connection:
            self._open.add(connection)
            reader = threading.Thread(target=self._read, args=(connection,))
            reader.start()
            try:
                for piece in self._pieces:
                    if self._stop.is_set():
                        break
                    connection.send(piece)
                reader.join(self._stay_s)
                connection.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            finally:
                reader.join()
                self._open.discard(connection)

    def _read(self, connection: Connection) -> None:
        """Reads what the server sends, which else would not be able to go on."""
        try:
            for found in connection.frames():
                if found.kind == GOAWAY:
                    self._calls.append((found.last_stream + 1) // 2)
        except OSError:
            pass


def _pieces() -> list[bytes]:
    """The calls of a connection, many in a piece."""
    calls = [
        frame(HEADERS, END_HEADERS, stream, _FIRST if stream == 1 else _AGAIN) + reset(stream)
        for stream in range(1, 2 * _CALLS, 2)
    ]
    return [b"".join(calls[first : first + _CALLS_AT_ONCE]) for first in range(0, _CALLS, _CALLS_AT_ONCE)]


if __name__ == "__main__":
    Flood(sys.argv[1], sys.argv[2]).run(int(sys.argv[3]))
