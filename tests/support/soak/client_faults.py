"""Clients that go away in the middle, or do not read, or never ask."""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import struct
from typing import Final

import grpc
import numpy as np

from support import heavy
from support.attack import connect, links
from support.endpoints import Refusal
from support.sequences import Refused, SequenceStream
from support.soak.fault import Scene
from support.soak.models import CHANNELS, FORGOTTEN, PLAIN, REPORTING, STRIDE, WIDE
from support.streams import Stream

_FLOATS: Final = 1 << 18
_BODY: Final = heavy.json_tensor(["1"] * _FLOATS, _FLOATS)
_IDLE: Final = 100

_sequences = itertools.count(1)


def vanish(scene: Scene) -> None:
    """Clients end their connections in the middle of a request, or with an answer unread; some by a reset."""
    head = f"POST /v2/models/{WIDE}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(_BODY)}\r\n\r\n".encode()
    for _ in range(10):
        end = scene.dice.choice((len(head) // 2, len(head) + scene.dice.randrange(len(_BODY)), None))
        with connect(scene.server.http) as link, contextlib.suppress(ConnectionError):
            link.sendall((head + _BODY)[:end])
            if scene.dice.random() < 0.5:
                link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            scene.pause(0.05)


def cancel(scene: Scene) -> None:
    """A client withdraws its calls."""
    data = np.arange(1000, dtype=np.int32).tobytes()
    wire = heavy.message(PLAIN, data, [1000], "INT32").SerializeToString()
    with grpc.insecure_channel(scene.server.grpc, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        for _ in range(20):
            call = channel.unary_unary(heavy.INFER).future(wire)
            scene.pause(0.01)
            call.cancel()


def withdraw(scene: Scene) -> None:
    """A client withdraws a stream of which many responses are still to come."""
    # The worker may be killed meanwhile.
    with Stream(scene.server) as stream, contextlib.suppress(grpc.RpcError):
        stream.send(REPORTING, {"X": np.arange(5000, dtype=np.int32)})
        for _ in range(scene.dice.randrange(20)):
            reply, last, _ = stream.receive()
            if last or isinstance(reply, Refusal):
                break


def forget(scene: Scene) -> None:
    """A client begins sequences and leaves without ending them."""
    update = np.ones((1, CHANNELS, STRIDE), np.float32)
    with SequenceStream(scene.server) as stream, contextlib.suppress(Refused):
        for _ in range(20):
            stream.send(FORGOTTEN, "snapshot_update", update, next(_sequences), start=True)
        for _ in range(scene.dice.randrange(20)):
            stream.receive()


def idle(scene: Scene) -> None:
    """Many clients connect, and ask nothing or half of something."""
    begun = scene.dice.choice((b"", b"GET /v2 HTTP/1.1\r\nHost", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
    address = scene.dice.choice((scene.server.http, scene.server.grpc, scene.server.metrics))
    with contextlib.suppress(ConnectionError), links(address, _IDLE, begun):
        scene.pause(1.0)


def read_nothing(scene: Scene) -> None:
    """A client asks for large answers, and does not read them."""
    wanted = json.dumps({"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 1], "data": [1]}]}).encode()
    head = f"POST /v2/models/{WIDE}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(wanted)}\r\n\r\n".encode()
    with connect(scene.server.http) as link, contextlib.suppress(OSError):
        link.settimeout(1.0)  # the server reads no more either
        link.sendall((head + wanted) * 20_000)
        scene.pause(1.0)
