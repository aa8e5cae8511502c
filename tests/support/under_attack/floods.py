"""Floods of frames of HTTP/2, on many connections that connect again when they are cut off."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import Final

from support.flooder import Flood
from support.http2 import WINDOW_UPDATE, Connection, frame
from support.under_attack.strike import CLOSED, Prepare, Strike
from support.under_attack.target import Target

# A type of frames that nobody knows.
_UNKNOWN: Final = 0xF3
# Longer than a server may hold a connection that it closes for a flood.
_STAY_S: Final = 3.0
_AT_ONCE: Final = 2000
# More than a server takes from one connection, and far fewer than would fill its window.
_TIMES: Final = 1000

WINDOW: Final = frame(WINDOW_UPDATE, payload=struct.pack(">I", 1))
UNKNOWN: Final = frame(_UNKNOWN, stream=1, payload=b"anything")


def resets(source: str, *, stay: bool = True) -> Prepare:
    """Calls that are opened and withdrawn at once, from an address of this machine.

    Those who do not stay leave before the server has read what they sent.
    """

    def prepare(target: Target) -> Strike:
        flood = Flood(target.grpc, source, _STAY_S if stay else 0.0)

        def strike() -> str:
            flood.flood()
            return CLOSED

        return strike

    return prepare


def frames(piece: bytes, source: str) -> Prepare:
    """The same frame without end."""

    def prepare(target: Target) -> Strike:
        wire = piece * _AT_ONCE

        def strike() -> str:
            with Connection(target.grpc, source=source) as connection:
                reader = threading.Thread(target=_read_all, args=(connection,))
                reader.start()
                try:
                    for _ in range(_TIMES):
                        connection.send(wire)
                except ConnectionError:
                    return CLOSED
                finally:
                    _shut_down(connection)
                    reader.join()
            return "all taken"

        return strike

    return prepare


def _read_all(connection: Connection) -> None:
    for _ in connection.frames():
        pass


def _shut_down(connection: Connection) -> None:
    with contextlib.suppress(OSError):  # the server was first
        connection.socket.shutdown(socket.SHUT_RDWR)
