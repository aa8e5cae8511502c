"""One blow of an attack, which an attacker strikes again and again."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from typing import Final

from support.attack import connect
from support.under_attack.target import Target

# Strikes once, and says what came of it in a word: the status of an answer, or how the connection ended. An empty word
# is not counted.
Strike = Callable[[], str]
# Prepares what takes long, before the attack begins.
Prepare = Callable[[Target], Strike]

CLOSED: Final = "closed"

_PIECE_BYTES: Final = 1 << 20


def exchange(address: str, wire: bytes, *, end: bool = False) -> str:
    """Sends bytes over a connection of their own, and nothing more if that is their end; the status of the answer.

    A server may answer, and close, before it has read all of them.
    """
    with connect(address) as link:
        with contextlib.suppress(ConnectionError):
            link.sendall(wire)
        if end:
            with contextlib.suppress(OSError):  # the server has closed already
                link.shutdown(socket.SHUT_WR)
        return status(link)


def status(link: socket.socket) -> str:
    """The status of the answer that comes, once the server has closed; the rest is thrown away."""
    first = bytearray()
    with contextlib.suppress(ConnectionError):
        while piece := link.recv(_PIECE_BYTES):
            first += piece[: 64 - len(first)]
    return word(bytes(first))


def word(answer: bytes) -> str:
    """The status with which an answer begins."""
    words = answer.split(b" ", 2)
    return words[1].decode(errors="replace") if len(words) == 3 and words[0].startswith(b"HTTP/") else CLOSED
