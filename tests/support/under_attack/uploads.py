"""Bodies and messages that are large, or become large."""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import grpc

from support import heavy
from support.under_attack.strike import CLOSED, Prepare, Strike, exchange
from support.under_attack.target import Target

MB: Final = 1_000_000
PATH: Final = "/v2/models/large/infer"

_CHUNK_BYTES: Final = 1 << 14
# Answers in binary, so that clients have little to read.
_BINARY: Final = ', "parameters": {"binary_data_output": true}'
_GZIP: Final = ("Content-Encoding: gzip",)
# Inputs, outputs, and a field that nobody knows; each is empty.
_FIELDS: Final = (b"\x2a\x00", b"\x32\x00", b"\x78\x00")
_BOMB_BYTES: Final = 256 << 20


def tensor_in_chunks(megabytes: int) -> Prepare:
    """A tensor whose length is not said."""

    def prepare(target: Target) -> Strike:
        count = megabytes * MB // 4
        body, headers = heavy.binary_tensor(heavy.ones(count), [1, count])
        wire = _head("Transfer-Encoding: chunked", *(f"{name}: {value}" for name, value in headers.items()))
        wire += b"".join(_chunks(b"".join(body)))
        return partial(exchange, target.http, wire)

    return prepare


def numbers_gzipped(megabytes: int) -> Prepare:
    """Numbers as JSON that expand to so much, no two alike, as an honest client sends them."""

    def prepare(target: Target) -> Strike:
        body = heavy.gzipped(_numbers(megabytes, seed=1))
        wire = _head(f"Content-Length: {len(body)}", *_GZIP) + body
        return partial(exchange, target.http, wire)

    return prepare


def numbers(megabytes: int) -> Prepare:
    """Numbers as JSON."""

    def prepare(target: Target) -> Strike:
        body = _numbers(megabytes, seed=2)
        wire = _head(f"Content-Length: {len(body)}") + body
        return partial(exchange, target.http, wire)

    return prepare


def parameters(megabytes: int) -> Prepare:
    """A JSON document of parameters and little else."""

    def prepare(target: Target) -> Strike:
        length = len('"1000000":1,')
        entries = ",".join(f'"{number}":1' for number in range(MB, MB + megabytes * MB // length))
        body = f'{{"inputs": [], "parameters": {{{entries}}}}}'.encode()
        wire = _head(f"Content-Length: {len(body)}") + body
        return partial(exchange, target.http, wire)

    return prepare


def empty_fields(megabytes: int) -> Prepare:
    """Messages over gRPC of fields that hold nothing."""

    def prepare(target: Target) -> Strike:
        wires = itertools.cycle([b"\x0a\x05large" + field * (megabytes * MB // len(field)) for field in _FIELDS])
        call = grpc.insecure_channel(target.grpc, options=heavy.UNLIMITED).unary_unary(heavy.INFER)

        def strike() -> str:
            try:
                call(next(wires), timeout=heavy.TIMEOUT_S)
            except grpc.RpcError as error:
                return str(error.code().name)
            return "OK"

        return strike

    return prepare


def bombs(target: Target) -> Strike:
    """Zeros, gzipped: a quarter of a gibibyte in a quarter of a megabyte, over HTTP and gRPC in turn."""
    body = heavy.gzipped(bytes(_BOMB_BYTES))
    wire = _head(f"Content-Length: {len(body)}", *_GZIP) + body
    headers = {"content-type": "application/grpc", "te": "trailers", "grpc-encoding": "gzip"}
    message = struct.pack(">BI", 1, len(body)) + body
    return in_turn([partial(exchange, target.http, wire), partial(_upload, target.grpc, message, headers)])


def in_turn(strikes: Sequence[Strike]) -> Strike:
    """One after the other, and again from the first."""
    endless = itertools.cycle(strikes)

    def strike() -> str:
        return next(endless)()

    return strike


def _upload(address: str, message: bytes, headers: dict[str, str]) -> str:
    try:
        heavy.upload(address, heavy.INFER, message, headers)
    except (AssertionError, StopIteration, ConnectionError):
        return "refused"  # before its end
    return CLOSED


def _head(*headers: str) -> bytes:
    return "\r\n".join([f"POST {PATH} HTTP/1.1", "Host: x", "Connection: close", *headers, "", ""]).encode()


def _chunks(body: bytes) -> Iterator[bytes]:
    for at in range(0, len(body), _CHUNK_BYTES):
        piece = body[at : at + _CHUNK_BYTES]
        yield b"%x\r\n%b\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


def _numbers(megabytes: int, seed: int) -> bytes:
    """A request of so many bytes of JSON, less a few."""
    chance = random.Random(seed)
    some = [f"{chance.random():.6f}" for _ in range(MB // 10)]
    count = megabytes * MB // len(f"{some[0]},") - len(_BINARY)
    return heavy.json_tensor(itertools.islice(itertools.cycle(some), count), count, more=_BINARY)
