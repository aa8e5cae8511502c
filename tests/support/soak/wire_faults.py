"""Bytes that no honest client sends: floods, bombs, damaged messages."""

from __future__ import annotations

import contextlib
import json
from functools import cache
from typing import Final

import numpy as np
from tritonclient.utils import InferenceServerException

from support import heavy
from support.attack import connect, links, rest
from support.flooder import Flooder
from support.regions import CLIENTS, RegionClient, SharedObject
from support.soak.fault import Scene
from support.soak.models import DOUBLE, PLAIN, VETERAN, WIDE

_BOMB_BYTES: Final = 64 << 20
_FIELDS: Final = 300_000
_ROW: Final = json.dumps({"inputs": [{"name": "X", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]}).encode()


def flood(scene: Scene) -> None:
    """Calls that are reset at once, on some connections from an address of their own."""
    with Flooder(scene.server.grpc, f"127.0.2.{scene.dice.randrange(1, 255)}", 4):
        scene.pause(2.0)


def connect_many(scene: Scene) -> None:
    """Connections that come and go."""
    for _ in range(5):
        with contextlib.suppress(ConnectionError), links(scene.server.http, 50, b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n"):
            pass


def bomb(scene: Scene) -> None:
    """A small body that becomes a large one, or many small parts."""
    kind = scene.dice.randrange(4)
    path = f"/v2/models/{WIDE}/infer"
    if kind == 0:
        _refused(scene, path, _zeroes(), {"Content-Encoding": "gzip"})
    elif kind == 1:
        _refused(scene, path, _parameters())
    elif kind == 2:
        heavy.call(
            scene.server.grpc, heavy.INFER, b"\x0a\x04wide" + scene.dice.choice((b"\x78\0", b"\x2a\0")) * _FIELDS
        )
    else:
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 40000000\r\n\r\n".encode()
        with links(scene.server.http, 100, head + b"{"):
            scene.pause(1.0)


def damage(scene: Scene) -> None:
    """Requests in which bytes are changed, taken away or doubled; an answer comes, or the connection ends."""
    for _ in range(20):
        body = _ROW if scene.dice.random() < 0.5 else _damaged(scene, _ROW)
        head = f"POST /v2/models/{DOUBLE}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        wire = (head + "Connection: close\r\n\r\n").encode() + body
        with connect(scene.server.http) as link, contextlib.suppress(OSError):
            link.settimeout(5.0)  # a length that is too great makes the server wait
            link.sendall(_damaged(scene, wire))
            link.shutdown(1)
            rest(link)


def damage_calls(scene: Scene) -> None:
    """The same for messages over gRPC."""
    data = np.arange(10, dtype=np.int32).tobytes()
    for _ in range(10):
        wire = heavy.message(PLAIN, data, [10], "INT32").SerializeToString()
        heavy.call(scene.server.grpc, heavy.INFER, _damaged(scene, wire))


def cut(scene: Scene) -> None:
    """A client cuts memory that it shares while the server uses it."""
    client = RegionClient(scene.dice.choice([*CLIENTS]), scene.server)
    model, datatype = scene.dice.choice(((WIDE, np.float32), (VETERAN, np.int32)))
    sent = np.ones((1, 1 << 20) if model == WIDE else (1 << 20,), datatype)
    try:
        with SharedObject.of(sent) as shared:
            client.register("cut", shared)
            shared.resize(sent.nbytes // scene.dice.choice((2, 3, 1 << 30)))
            for _ in range(3):
                with contextlib.suppress(InferenceServerException):
                    client.infer(model, [client.place("X", sent, "cut")])
                    raise AssertionError("tensors in memory that is gone are answered")
            client.unregister("cut")
    finally:
        client.close()


def _refused(scene: Scene, path: str, body: bytes, headers: dict[str, str] | None = None) -> None:
    status, text = heavy.ask(scene.server.http, path, body, headers)
    assert 400 <= status < 600, text[:300]


@cache
def _zeroes() -> bytes:
    return heavy.gzipped(bytes(_BOMB_BYTES))


@cache
def _parameters() -> bytes:
    return json.dumps({"inputs": [], "parameters": {str(number): 1 for number in range(_FIELDS)}}).encode()


def _damaged(scene: Scene, wire: bytes) -> bytes:
    damaged = bytearray(wire)
    for _ in range(scene.dice.randrange(1, 5)):
        place = scene.dice.randrange(len(damaged)) if damaged else 0
        length = scene.dice.randrange(1, 9)
        piece = scene.dice.choice((b"", scene.dice.randbytes(length), bytes(damaged[place : place + length]) * 2))
        damaged[place : place + length] = piece
    return bytes(damaged)
