"""An HTTP server that answers each post as its body says, and keeps a record of its own.

A body is a number of milliseconds, after which the answer comes, or one word: `hang` is never answered, `error` is
answered with 500, `garbage` with what is no HTTP, `close` with the end of the connection, `die` with the end of the
server. `stall MILLISECONDS` holds up every answer from now on for so long. An answer repeats its request, `count`
counts up instead.

`GET /record` gives the times of each answered post on CLOCK_MONOTONIC, in nanoseconds: when it was there, and when its
answer was about to be sent. It was there when the system says so: until a process turns to it some 100 µs go by, which
its client waits for as well. This file is also the program of that server: it prints its port.
"""

from __future__ import annotations

import heapq
import json
import os
import selectors
import socket
import struct
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from itertools import count
from types import TracebackType
from typing import Self

import numpy as np

_GARBAGE = b"\x00\xff this is no answer\r\n\r\n"
_SO_TIMESTAMPNS = 35
"""Option of Linux that `socket` has no name for: what is received comes with the moment at which it was there."""
_TIMESPEC = struct.Struct("qq")
_BACKLOG = 1024


@dataclass(order=True)
class _Answer:
    """What is to be sent, and when."""

    due_ns: int
    number: int
    begun_ns: int = field(compare=False)
    body: str = field(compare=False)
    connection: _Connection = field(compare=False)


class _Script:
    """What all connections share: the answers that are due, in their order, and those that were sent."""

    def __init__(self) -> None:
        self.record: list[tuple[int, int]] = []
        self.numbers = count()
        self.stalled_until_ns = 0
        self._due: list[_Answer] = []
        self._order = count()

    def answer_at(self, due_ns: int, begun_ns: int, body: str, connection: _Connection) -> None:
        heapq.heappush(self._due, _Answer(due_ns, next(self._order), begun_ns, body, connection))

    def wait_s(self) -> float | None:
        """How long nothing is due.

        An answer may be late by a millisecond, and the record has that. A loop that did not sleep would keep a core
        from a client that was woken on it.
        """
        if not self._due:
            return None
        left_ns = max(self._due[0].due_ns, self.stalled_until_ns) - time.monotonic_ns()
        return max(left_ns, 0) / 1e9

    def send_due(self) -> None:
        while self._due and max(self._due[0].due_ns, self.stalled_until_ns) <= time.monotonic_ns():
            answer = heapq.heappop(self._due)
            message = _message(answer.body.encode())
            # Before it is sent: a process that waits for a processor afterwards would record more than its client saw.
            self.record.append((answer.begun_ns, time.monotonic_ns()))
            answer.connection.send(message)


class _Connection:
    """One connection."""

    def __init__(self, script: _Script, peer: socket.socket) -> None:
        self._script = script
        self._peer = peer
        self._received = bytearray()
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def is_readable(self) -> bool:
        """Reads what is there; returns whether more may come."""
        try:
            data, notes, _, _ = self._peer.recvmsg(1 << 16, 256)
        except ConnectionError:
            return False
        begun_ns = _received_ns(notes)
        self._received += data
        head, end, rest = self._received.partition(b"\r\n\r\n")
        if not end:
            return bool(data)
        text = head.decode()
        if text.startswith("GET /record"):
            self._received.clear()
            self.send(_message(json.dumps(self._script.record).encode()))
        elif len(rest) >= _length(text):
            self._received.clear()
            return self._post(rest.decode(), begun_ns) and bool(data)
        return bool(data)

    def send(self, message: bytes) -> None:
        """Sends; a client that is gone misses it."""
        try:
            self._peer.sendall(message)
        except OSError:
            return

    def _post(self, body: str, begun_ns: int) -> bool:
        word, _, argument = body.partition(" ")
        delay_ms = 0.0
        match word:
            case "hang":
                return True
            case "die":
                os._exit(1)
            case "garbage":
                self.send(_GARBAGE)
                return False
            case "close":
                return False
            case "error":
                self.send(_message(b'{"error":"it is scripted"}', "500 Internal Server Error"))
                return True
            case "stall":
                self._script.stalled_until_ns = begun_ns + _ns(float(argument))
            case "count":
                body = str(next(self._script.numbers))
            case _:
                delay_ms = float(word)
        self._script.answer_at(begun_ns + _ns(delay_ms), begun_ns, body, self)
        return True


def _serve() -> None:
    """The program."""
    script = _Script()
    listener = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
    # Connections inherit it.
    listener.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        # The end of standard input is the end of the test.
        selector.register(sys.stdin, selectors.EVENT_READ)
        print(listener.getsockname()[1], flush=True)
        while True:
            for key, _ in selector.select(script.wait_s()):
                if key.fileobj is sys.stdin:
                    return
                if key.fileobj is listener:
                    peer, _ = listener.accept()
                    selector.register(peer, selectors.EVENT_READ, _Connection(script, peer))
                elif not key.data.is_readable():
                    selector.unregister(key.fileobj)
                    assert isinstance(key.fileobj, socket.socket)
                    key.fileobj.close()
            script.send_due()


def _received_ns(notes: list[tuple[int, int, bytes]]) -> int:
    """When data was there by the system's clock of the day, as a moment of CLOCK_MONOTONIC; now where it is silent."""
    day_ns = time.time_ns()
    # In this order: a process that waits for a processor in between takes the data for later than it was, and its
    # answer is not too early.
    now_ns = time.monotonic_ns()
    for _, kind, data in notes:
        if kind == _SO_TIMESTAMPNS:
            seconds, rest_ns = _TIMESPEC.unpack(data[: _TIMESPEC.size])
            age_ns: int = day_ns - (seconds * 1_000_000_000 + rest_ns)
            return now_ns - max(age_ns, 0)
    return now_ns


def _message(body: bytes, status: str = "200 OK") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _ns(milliseconds: float) -> int:
    return round(1e6 * milliseconds)


def _length(head: str) -> int:
    names = (line.partition(":") for line in head.lower().split("\r\n"))
    return next(int(value) for name, _, value in names if name == "content-length")


class ScriptedLatency:
    """The server as a process of its own. A context manager."""

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.communicate()

    @property
    def address(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def record(self) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        """When each post was there, and when its answer was sent, in nanoseconds; shape `[N, 2]`."""
        with urllib.request.urlopen(f"{self.address}/record") as answer:
            return np.array(json.load(answer), np.int64).reshape(-1, 2)


if __name__ == "__main__":
    _serve()
