"""An HTTP server that answers each post as its body says, and keeps a record of its own.

A body is a number of milliseconds, after which the answer comes, or one word: `hang` is never answered, `error` is
answered with 500, `garbage` with what is no HTTP, `close` with the end of the connection, `die` with the end of the
server. `stall MILLISECONDS` holds up every answer from now on for so long. An answer repeats its request, `count`
counts up instead.

`GET /record` gives the times of each answered post on CLOCK_MONOTONIC, in nanoseconds: when it was there, and when its
answer was about to be sent. This file is also the program of that server: it prints its port.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.request
from itertools import count
from types import TracebackType
from typing import Self

import numpy as np

_GARBAGE = b"\x00\xff this is no answer\r\n\r\n"


class _Script:
    """What all connections share."""

    def __init__(self) -> None:
        self.record: list[tuple[int, int]] = []
        self.numbers = count()
        self.stalled_until = 0.0


class _Connection(asyncio.Protocol):
    """One connection. Callbacks alone, without tasks: what the server itself adds is in no record of it."""

    def __init__(self, script: _Script) -> None:
        self._script = script
        self._received = bytearray()
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        self._received += data
        head, end, rest = self._received.partition(b"\r\n\r\n")
        if not end:
            return
        text = head.decode()
        if text.startswith("GET /record"):
            self._received.clear()
            self._answer(json.dumps(self._script.record).encode())
        elif len(rest) >= _length(text):
            self._received.clear()
            self._post(rest.decode(), now)

    def _post(self, body: str, begun: int) -> None:
        word, _, argument = body.partition(" ")
        delay_s = 0.0
        match word:
            case "hang":
                return
            case "die":
                os._exit(1)
            case "garbage":
                self._transport.write(_GARBAGE)
                return self._transport.close()
            case "close":
                return self._transport.close()
            case "error":
                return self._answer(b'{"error":"it is scripted"}', "500 Internal Server Error")
            case "stall":
                self._script.stalled_until = self._loop.time() + float(argument) / 1e3
            case "count":
                body = str(next(self._script.numbers))
            case _:
                delay_s = float(word) / 1e3
        self._loop.call_at(self._loop.time() + delay_s, self._end, body, begun)

    def _end(self, body: str, begun: int) -> None:
        if self._loop.time() < self._script.stalled_until:
            self._loop.call_at(self._script.stalled_until, self._end, body, begun)
            return
        # Before it is sent: a process that waits for a processor afterwards would record more than its client saw.
        self._script.record.append((begun, time.monotonic_ns()))
        self._answer(body.encode())

    def _answer(self, body: bytes, status: str = "200 OK") -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)


async def _serve() -> None:
    """The program."""
    script = _Script()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(script), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    # The end of standard input is the end of the test.
    await loop.run_in_executor(None, sys.stdin.read)
    os._exit(0)


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
    asyncio.run(_serve())
