"""An HTTP server that answers each post as its body says, and keeps a record of its own.

A body is a number of milliseconds, after which the answer comes, or one word: `hang` is never answered, `error` is
answered with 500, `garbage` with what is no HTTP, `close` with the end of the connection, `die` with the end of the
server. `stall MILLISECONDS` holds up every answer from now on for so long. An answer repeats its request, `count`
counts up instead.

`GET /record` gives the times of each answered post on CLOCK_MONOTONIC, in nanoseconds: when it was there, and when its
answer was sent. This file is also the program of that server: it prints its port.
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


class _Server:
    """The program."""

    def __init__(self) -> None:
        self._record: list[tuple[int, int]] = []
        self._numbers = count()
        self._stalled_until = 0.0

    async def serve(self) -> None:
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        # The end of standard input is the end of the test.
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        os._exit(0)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                if head.startswith("GET /record"):
                    _answer(writer, json.dumps(self._record).encode())
                    continue
                body = (await reader.readexactly(_length(head))).decode()
                begun = time.monotonic_ns()
                if not await self._post(writer, body):
                    break
                self._record.append((begun, time.monotonic_ns()))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _post(self, writer: asyncio.StreamWriter, body: str) -> bool:
        """Answers; returns whether the connection goes on."""
        loop = asyncio.get_running_loop()
        word, _, argument = body.partition(" ")
        match word:
            case "hang":
                await asyncio.Event().wait()
            case "die":
                os._exit(1)
            case "garbage":
                writer.write(_GARBAGE)
                return False
            case "close":
                return False
            case "error":
                _answer(writer, b'{"error":"it is scripted"}', "500 Internal Server Error")
                return True
            case "stall":
                self._stalled_until = loop.time() + float(argument) / 1e3
            case "count":
                body = str(next(self._numbers))
            case _:
                await asyncio.sleep(float(word) / 1e3)
        while (left := self._stalled_until - loop.time()) > 0:
            await asyncio.sleep(left)
        _answer(writer, body.encode())
        return True


def _length(head: str) -> int:
    names = (line.partition(":") for line in head.lower().split("\r\n"))
    return next(int(value) for name, _, value in names if name == "content-length")


def _answer(writer: asyncio.StreamWriter, body: bytes, status: str = "200 OK") -> None:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)


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
    asyncio.run(_Server().serve())
