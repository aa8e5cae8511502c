"""HTTP/2 frame by frame, for what no library would send."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
ACK = END_STREAM = 1
END_HEADERS = 4
CANCEL: Final = 8
ENHANCE_YOUR_CALM: Final = 11

_HEAD: Final = struct.Struct(">BHBBI")
_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True)
class Frame:
    """A frame as it came."""

    kind: int
    flags: int
    stream: int
    payload: bytes

    @property
    def error_code(self) -> int:
        """Why a connection or stream ends."""
        return int(struct.unpack(">I", self.payload[4:8] if self.kind == GOAWAY else self.payload[:4])[0])

    @property
    def last_stream(self) -> int:
        """The last stream that the sender of a `GOAWAY` has read of."""
        return int(struct.unpack(">I", self.payload[:4])[0])


class Connection:
    """A connection that sends only what a test sends. A context manager."""

    def __init__(self, address: str, settings: bytes = b"", source: str = "") -> None:
        """Connects to ``host:port``, from an address of this machine, and sends the preface and the settings."""
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), _TIMEOUT_S, (source, 0))
        self._stream = self.socket.makefile("rb")
        self.socket.sendall(PREFACE + frame(SETTINGS, payload=settings))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()
        self.socket.close()

    def send(self, *frames: bytes) -> None:
        """Sends frames."""
        self.socket.sendall(b"".join(frames))

    def frames(self) -> Iterator[Frame]:
        """The frames that come, until the server closes."""
        while len(head := self._read(_HEAD.size)) == _HEAD.size:
            high, low, kind, flags, stream = _HEAD.unpack(head)
            yield Frame(kind, flags, stream, self._read(high << 16 | low))

    def next(self, kind: int) -> Frame:
        """The next frame of a kind.

        Raises:
            ConnectionError: If the server closes instead.
        """
        for found in self.frames():
            if found.kind == kind:
                return found
        raise ConnectionError(f"closed before a frame of kind {kind} came")

    def goaway(self) -> Frame | None:
        """The last `GOAWAY` before the server closes, if it sends one."""
        last = None
        for found in self.frames():
            last = found if found.kind == GOAWAY else last
        return last

    def _read(self, length: int) -> bytes:
        try:
            return self._stream.read(length)
        except ConnectionError:
            return b""


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    """A frame."""
    return _HEAD.pack(len(payload) >> 16, len(payload) & 0xFFFF, kind, flags, stream) + payload


def call(stream: int, path: str, headers: Mapping[str, str] | None = None, *, end: bool = False) -> bytes:
    """The head of a gRPC call; its messages follow, unless it ends."""
    fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "localhost"}
    fields |= {"content-type": "application/grpc", "te": "trailers"} | dict(headers or {})
    return frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, header_block(fields))


def request(
    stream: int, method: str, path: str, headers: Mapping[str, str] | None = None, *, end: bool = True
) -> bytes:
    """The head of an HTTP request."""
    fields = {":method": method, ":scheme": "http", ":path": path, ":authority": "localhost"} | dict(headers or {})
    return frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, header_block(fields))


def header_block(fields: Mapping[str, str]) -> bytes:
    """Headers in their plainest form: nothing is compressed."""
    return b"".join(b"\0" + _text(name) + _text(value) for name, value in fields.items())


def reset(stream: int, code: int = CANCEL) -> bytes:
    """The frame that withdraws a call."""
    return frame(RST_STREAM, stream=stream, payload=struct.pack(">I", code))


def _text(text: str) -> bytes:
    raw = text.encode()
    return _length(len(raw)) + raw


def _length(length: int) -> bytes:
    if length < 127:
        return bytes([length])
    rest, encoded = length - 127, bytearray([127])
    while rest >= 128:
        encoded.append(rest & 127 | 128)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)
