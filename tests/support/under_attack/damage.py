"""Heads and frames that are damaged, and heads that two readers may read in two ways."""

from __future__ import annotations

import random
import struct
from functools import partial
from typing import Final

from support import heavy
from support.heavy import message, ones
from support.http2 import DATA, END_STREAM, PREFACE, SETTINGS, call, frame
from support.steady_client import BODY
from support.under_attack.strike import Strike, exchange
from support.under_attack.target import Target
from support.under_attack.uploads import PATH, in_turn

_DAMAGED: Final = 10_000
_MOST_CHANGES: Final = 4
_LONGEST_PIECE: Final = 40

_CHUNKED: Final = f"{len(BODY):x}\r\n{BODY}\r\n0\r\n\r\n"
_LENGTH: Final = f"Content-Length: {len(BODY)}"
# The header lines of each, and the body.
_AMBIGUOUS: Final[list[tuple[list[str], str]]] = [
    (["Host: a", "Host: b", _LENGTH], BODY),
    ([_LENGTH], BODY),
    (["Host: a", "Transfer-Encoding: gzip, chunked"], _CHUNKED),
    (["Host: a", "Transfer-Encoding: gzip", "Transfer-Encoding: chunked"], _CHUNKED),
    (["Host: a", _LENGTH, f"Content-Length: {len(BODY) + 1}"], BODY + " "),
]


def heads(target: Target) -> Strike:
    """Requests over HTTP/1, each on a connection of its own."""
    lines = [f"POST {PATH} HTTP/1.1", "Host: x", "Content-Type: application/json", "Accept-Encoding: gzip"]
    whole = "\r\n".join([*lines, _LENGTH, "Connection: close", "", BODY]).encode()
    wires = [damaged(whole, seed) for seed in range(_DAMAGED)]
    return in_turn([partial(exchange, target.http, wire, end=True) for wire in wires])


def calls(target: Target) -> Strike:
    """Calls over gRPC, damaged behind the preface."""
    wire = message("large", ones(2), [1, 2]).SerializeToString()
    prefixed = struct.pack(">BI", 0, len(wire)) + wire
    whole = frame(SETTINGS) + call(1, heavy.INFER) + frame(DATA, END_STREAM, 1, prefixed)
    wires = [PREFACE + damaged(whole, seed) for seed in range(_DAMAGED)]
    return in_turn([partial(exchange, target.grpc, wire, end=True) for wire in wires])


def ambiguous_heads(target: Target) -> Strike:
    """Requests that a proxy in front of the server may divide otherwise."""
    first, last = f"POST {PATH} HTTP/1.1", "Connection: close"
    wires = ["\r\n".join([first, *lines, last, "", body]).encode() for lines, body in _AMBIGUOUS]
    return in_turn([partial(exchange, target.http, wire) for wire in wires])


def damaged(whole: bytes, seed: int) -> bytes:
    """A copy with a few changes: bytes that differ, are missing, come again or were never there."""
    chance = random.Random(seed)
    copy = bytearray(whole)
    for _ in range(chance.randint(1, _MOST_CHANGES)):
        at, length = chance.randrange(len(copy)), chance.randint(1, _LONGEST_PIECE)
        match chance.randrange(4):
            case 0:
                copy[at] ^= 1 << chance.randrange(8)
            case 1 if len(copy) > at + length:
                del copy[at : at + length]
            case 2:
                copy[at:at] = copy[at : at + length]
            case _:
                copy[at:at] = chance.randbytes(length)
    return bytes(copy)
