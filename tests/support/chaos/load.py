"""Callers that keep a server busy: each a thread, with pauses, so that the machine has time for the server."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
from tritonclient import grpc as grpc_client
from tritonclient.grpc import service_pb2

from support.chaos.account import Account
from support.chaos.models import NATIVE, POISONS, STREAM, UNARY
from support.endpoints import ENDPOINTS, Endpoint, GrpcEndpoint, Refusal, tensors
from support.server import ServerProcess
from support.streams import Stream

# One request in this many harms its model.
_POISON_EVERY = 60
_LONGEST_PAUSE_S = 0.004
_FLOOD = 150
_LARGE_NUMBERS = 2 << 20


Numbers = np.ndarray[tuple[int, ...], np.dtype[np.int32]]


class Load:
    """All callers. A context manager: they stop, and have stopped, when it is left."""

    def __init__(self, server: ServerProcess, account: Account, seed: int) -> None:
        self._server = server
        self._account = account
        self._over = threading.Event()
        callers: list[Callable[[random.Random], None]] = [
            *(lambda dice, protocol=protocol: self._unary(dice, protocol) for protocol in [*ENDPOINTS] * 2),  # type: ignore[misc]
            self._stream,
            self._drop_http,
            self._drop_grpc,
            self._ask_native,
        ]
        self._threads = [
            threading.Thread(target=self._run, args=(caller, random.Random(f"{seed} {number}")), daemon=True)
            for number, caller in enumerate(callers)
        ]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(180)
            if thread.is_alive():
                self._account.violation("a caller waits for an answer that does not come")

    def flood(self, dice: random.Random) -> None:
        """Many requests at once, and some large ones; returns once all have ended."""
        model = dice.choice(UNARY)
        sizes = [1] * _FLOOD + [_LARGE_NUMBERS] * 2
        with GrpcEndpoint(self._server) as endpoint, ThreadPoolExecutor(len(sizes)) as pool:
            list(pool.map(lambda size: self.ask(endpoint, model, np.arange(size, dtype=np.int32)), sizes))

    def ask(self, endpoint: Endpoint, model: str, numbers: Numbers) -> bool:
        """Sends one request and writes its end into the account; whether it was answered."""
        # The batching model has a dimension more.
        shaped = numbers[np.newaxis] if model == "batching" else numbers
        self._account.sent(model)
        try:
            answer = endpoint.ask(model, {"X": shaped})["Y"]
        except Refusal as refusal:
            self._account.refused(model, refusal)
            return False
        self._account.answered(model, right=np.array_equal(answer, shaped * 2), what=answer)
        return True

    def ask_stream(self, stream: Stream, count: int) -> bool:
        """The same for a request that is answered ``count`` times."""
        self._account.sent(STREAM)
        stream.send(STREAM, {"X": np.array([count], np.int32)})
        numbers = []
        for reply in stream.replies():
            if isinstance(reply, Refusal):
                self._account.refused(STREAM, reply)
                return False
            numbers.append(int(reply["Y"][0]))
        self._account.answered(STREAM, right=numbers == list(range(count)), what=numbers)
        return True

    def _run(self, caller: Callable[[random.Random], None], dice: random.Random) -> None:
        while not self._over.is_set():
            try:
                caller(dice)
            except Exception as error:
                self._account.violation(f"a caller failed: {type(error).__name__}: {error}")

    def _unary(self, dice: random.Random, protocol: str) -> None:
        with ENDPOINTS[protocol](self._server) as endpoint:
            while not self._over.is_set():
                self.ask(endpoint, dice.choice(UNARY), _numbers(dice))
                time.sleep(dice.uniform(0, _LONGEST_PAUSE_S))

    def _ask_native(self, dice: random.Random) -> None:
        with ENDPOINTS[dice.choice([*ENDPOINTS])](self._server) as endpoint:
            for _ in range(100):
                self._account.sent(NATIVE)
                answer = endpoint.ask(NATIVE, {"X": np.array([[1, 2]], np.float32)})["Y"]
                self._account.answered(NATIVE, right=answer.tolist() == [[2, 4]], what=answer)
                if self._over.wait(dice.uniform(0, 4 * _LONGEST_PAUSE_S)):
                    return

    def _stream(self, dice: random.Random) -> None:
        with Stream(self._server) as stream:
            for _ in range(20):
                if dice.randrange(10) == 0:
                    self._account.sent(STREAM)
                    stream.send(STREAM, {"X": np.array([1000], np.int32)})
                    stream.receive()
                    self._account.dropped(STREAM)
                    return
                self.ask_stream(
                    stream, dice.choice(POISONS) if dice.randrange(_POISON_EVERY) == 0 else dice.randrange(100)
                )
                if self._over.wait(dice.uniform(0, _LONGEST_PAUSE_S)):
                    return

    def _drop_http(self, dice: random.Random) -> None:
        model = dice.choice(("plain", "caller"))
        document = {"inputs": [{"name": "X", "shape": [1], "datatype": "INT32", "data": [1]}]}
        body = json.dumps(document).encode()
        head = f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        host, port = self._server.http.split(":")
        self._account.sent(model)
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall((head + body)[: dice.choice((len(head) + 5, None))])
            time.sleep(dice.uniform(0, _LONGEST_PAUSE_S))
        self._account.dropped(model)
        self._over.wait(dice.uniform(0, 10 * _LONGEST_PAUSE_S))

    def _drop_grpc(self, dice: random.Random) -> None:
        model = dice.choice(("plain", "caller"))
        (tensor,) = tensors(grpc_client, {"X": np.array([1], np.int32)})
        message = service_pb2.ModelInferRequest(model_name=model, inputs=[tensor._get_tensor()])
        message.raw_input_contents.append(tensor._get_content())
        # A connection of its own: one that resets many calls is closed, and with it whatever else it carries.
        with grpc.insecure_channel(self._server.grpc, [("grpc.use_local_subchannel_pool", 1)]) as channel:
            method = channel.unary_unary(
                "/inference.GRPCInferenceService/ModelInfer",
                request_serializer=service_pb2.ModelInferRequest.SerializeToString,
            )
            for _ in range(20):
                self._account.sent(model)
                call = method.future(message)
                time.sleep(dice.uniform(0, _LONGEST_PAUSE_S))
                call.cancel()
                self._account.dropped(model)
                if self._over.wait(dice.uniform(0, 10 * _LONGEST_PAUSE_S)):
                    return


def _numbers(dice: random.Random) -> Numbers:
    if dice.randrange(_POISON_EVERY) == 0:
        return np.array([dice.choice(POISONS)], np.int32)
    return np.arange(dice.choice((1, 10, 1_000, 50_000)), dtype=np.int32)
