"""Senders as in the lab: each has a connection, and sends the next request when the answer to the last one is there.

`run.py` starts this file as a process of its own, so that what senders cost is not counted as the server's.
"""

from __future__ import annotations

import argparse
import json
import selectors
import socket
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path

TIMEOUT_S = 60.0
_READ_BYTES = 1 << 16


class SendFailed(Exception):
    """A server closed a connection, said nothing, or answered otherwise than it did at first."""


@dataclass(frozen=True)
class Load:
    """What came of some seconds of sending.

    Attributes:
        requests: Answered requests.
        rate: Requests a second.
        median_ms: Median of the time from the first byte sent to the last one read, in milliseconds.
        p99_ms: 99th percentile of it.
    """

    requests: int
    rate: float
    median_ms: float
    p99_ms: float


@dataclass(eq=False)
class Connection:
    """One sender."""

    socket: socket.socket
    sent_s: float = 0.0
    received: bytearray = field(default_factory=bytearray)

    def send(self, request: bytes) -> None:
        """Sends it."""
        self.received.clear()
        self.sent_s = time.perf_counter()
        self.socket.sendall(request)

    def receive(self) -> bytes | None:
        """The answer's body, once all of it is there.

        Raises:
            SendFailed: If the connection ended, or the status is not 200.
        """
        try:
            read = self.socket.recv(_READ_BYTES)
        except ConnectionResetError:
            read = b""
        if not read:
            raise SendFailed(f"the server closed the connection after {bytes(self.received[:200])!r}")
        self.received += read
        head, end, body = bytes(self.received).partition(b"\r\n\r\n")
        if not end:
            return None
        status, *lines = head.split(b"\r\n")
        headers = dict(line.lower().split(b": ", 1) for line in lines)
        if len(body) < int(headers[b"content-length"]):
            return None
        if b" 200 " not in status + b" ":
            raise SendFailed(f"{status.decode()}: {body[:200].decode(errors='replace')}")
        return body


def ask(port: int, request: bytes) -> bytes:
    """The body of the answer to one request.

    Raises:
        SendFailed: If there is none.
    """
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as opened:
        connection = Connection(opened)
        connection.send(request)
        while (body := connection.receive()) is None:
            pass
        return body


def load(port: int, request: bytes, expected: bytes, senders: int, seconds: float) -> Load:
    """Sends one request over and over.

    Args:
        port: Where the server listens on this machine.
        request: All bytes of the request.
        expected: The body that each answer must have.
        senders: How many connections send at a time.
        seconds: For how long; requests under way then are waited for.

    Raises:
        SendFailed: If an answer is missing or is another one.
    """
    with ExitStack() as stack:
        ready = stack.enter_context(selectors.DefaultSelector())
        for _ in range(senders):
            opened = stack.enter_context(socket.create_connection(("127.0.0.1", port), TIMEOUT_S))
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ready.register(opened, selectors.EVENT_READ, Connection(opened))
        begin_s = time.perf_counter()
        latencies_s = _answered(ready, request, expected, begin_s + seconds)
        taken_s = time.perf_counter() - begin_s
    latencies_s.sort()
    median_s, p99_s = (latencies_s[int(share * (len(latencies_s) - 1))] for share in (0.5, 0.99))
    return Load(len(latencies_s), len(latencies_s) / taken_s, median_s * 1e3, p99_s * 1e3)


def _answered(ready: selectors.BaseSelector, request: bytes, expected: bytes, until_s: float) -> list[float]:
    """How long each request took that the connections sent until then, in seconds."""
    latencies_s = []
    waiting = [key.data for key in ready.get_map().values()]
    for connection in waiting:
        connection.send(request)
    while waiting:
        if not (events := ready.select(TIMEOUT_S)):
            raise SendFailed(f"no answer within {TIMEOUT_S:.0f} s")
        for key, _ in events:
            if (body := key.data.receive()) is None:
                continue
            now_s = time.perf_counter()
            latencies_s.append(now_s - key.data.sent_s)
            if body != expected:
                raise SendFailed(f"{body[:200]!r} instead of {expected[:200]!r}")
            if now_s < until_s:
                key.data.send(request)
            else:
                waiting.remove(key.data)
    return latencies_s


def main() -> None:
    """Reads the command line and prints what came of it, as JSON."""
    parser = argparse.ArgumentParser(description="Send one request over and over.")
    parser.add_argument("request", type=Path, help="a file with all bytes of the request")
    parser.add_argument("expected", type=Path, help="a file with the body that each answer must have")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--senders", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=1.0)
    asked = parser.parse_args()
    done = load(asked.port, asked.request.read_bytes(), asked.expected.read_bytes(), asked.senders, asked.seconds)
    print(json.dumps(asdict(done)))


if __name__ == "__main__":
    main()
