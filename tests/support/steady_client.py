"""A well-behaved client that works on while others misbehave, and measures how much slower it becomes.

It is a process of its own, so that it measures the server and not the interpreter of the test.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import numpy as np
import tritonclient.grpc as grpc_client

BODY: Final = json.dumps({"inputs": [{"name": "X", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]})
INFER: Final = "/v2/models/double/infer"

# A time in which this process was not scheduled for longer than this does not count: it is not the server's.
_STANDSTILL_S: Final = 0.1

# A pause between two requests: the client asks often, and leaves the machine to the others.
_PAUSE_S: Final = 0.002
_TIMEOUT_S: Final = 60.0

# Latencies below this are noise: an attacker takes a core and the server another, so on a machine of two cores, where
# other tests run as well, server and client wait for some dozen time slices of several milliseconds each. An attack
# that works takes seconds.
NOISE_S: Final = 1.0


class SteadyClient:
    """Asks the model `double` over HTTP and gRPC, each over one connection, for as long as the context lasts."""

    def __init__(self, http_address: str, grpc_address: str) -> None:
        """Starts the process, which connects with its first request."""
        command = [sys.executable, "-m", "support.steady_client", http_address, grpc_address]
        self._process = subprocess.Popen(
            command,
            cwd=Path(__file__).parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,  # a Ctrl-C of the person at the keyboard is not its own
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()
        if error is None:
            assert self._process.returncode == 0, "the steady client got a wrong answer, see its output"

    def latencies_s(self, at_least: int) -> list[float]:
        """The latencies since the last call, in seconds, once there are at least this many.

        Raises:
            AssertionError: If an answer was wrong, or there are fewer after a minute.
        """
        return [latency for latencies_s in self.latencies_by_protocol_s(at_least).values() for latency in latencies_s]

    def latencies_by_protocol_s(self, at_least: int) -> dict[str, list[float]]:
        """The same for `http` and `grpc` each; at least this many are those of both together."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(at_least, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        assert answer, "the steady client got a wrong answer, see its output"
        return dict(json.loads(answer))


def p99_s(latencies_s: list[float]) -> float:
    """The latency that one request in a hundred exceeds, in seconds."""
    return float(np.quantile(latencies_s, 0.99))


class _Work:
    """The work of the process."""

    def __init__(self, http_address: str, grpc_address: str) -> None:
        self._http, self._grpc = http_address, grpc_address
        self._stop = threading.Event()
        self._changed = threading.Condition()
        self._latencies_s: dict[str, list[float]] = {"http": [], "grpc": []}
        self._errors: list[Exception] = []
        self._looks = 0
        self._stood_s = 0.0

    def run(self) -> int:
        """Prints the latencies once for each line of its input, and ends with the input."""
        works = (self._over_http, self._over_grpc, self._look)
        threads = [threading.Thread(target=self._run, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        for line in sys.stdin:
            if (latencies_s := self._take(int(line))) is None:
                break
            print(json.dumps(latencies_s), flush=True)
        self._stop.set()
        for thread in threads:
            thread.join()
        for error in self._errors:
            print(repr(error), file=sys.stderr)
        return 1 if self._errors else 0

    def _take(self, at_least: int) -> dict[str, list[float]] | None:
        def count() -> int:
            return sum(len(latencies_s) for latencies_s in self._latencies_s.values())

        with self._changed:
            self._changed.wait_for(lambda: self._errors or count() >= at_least, _TIMEOUT_S)
            if self._errors or count() < at_least:
                return None
            latencies_s, self._latencies_s = self._latencies_s, {protocol: [] for protocol in self._latencies_s}
        return latencies_s

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            with self._changed:
                self._errors.append(error)
                self._changed.notify_all()

    def _repeat(self, protocol: str, ask: Callable[[], None]) -> None:
        while not self._stop.is_set():
            stood_s, begun_s = self._stood_s, time.monotonic()
            ask()
            spent_s = time.monotonic() - begun_s
            if spent_s > _STANDSTILL_S:
                # It may have stood still once more since the answer came.
                spent_s = max(0.0, spent_s - (self._stood_by_now_s() - stood_s))
            with self._changed:
                self._latencies_s[protocol].append(spent_s)
                self._changed.notify_all()
            self._stop.wait(_PAUSE_S)

    def _stood_by_now_s(self) -> float:
        """How long this process has stood still; two more looks make sure that the last standstill is counted."""
        with self._changed:
            enough = self._looks + 2
            self._changed.wait_for(lambda: self._looks >= enough or self._stop.is_set(), _TIMEOUT_S)
            return self._stood_s

    def _look(self) -> None:
        """Adds up how long this process has stood still."""
        last_s = time.monotonic()
        while not self._stop.wait(_PAUSE_S):
            now_s = time.monotonic()
            with self._changed:
                self._looks += 1
                if now_s - last_s > _STANDSTILL_S:
                    self._stood_s += now_s - last_s
                self._changed.notify_all()
            last_s = now_s

    def _over_http(self) -> None:
        connection = http.client.HTTPConnection(self._http, timeout=_TIMEOUT_S)

        def ask() -> None:
            connection.request("POST", INFER, BODY)
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status == 200, text

        try:
            self._repeat("http", ask)
        finally:
            connection.close()

    def _over_grpc(self) -> None:
        tensor = grpc_client.InferInput("X", [1, 2], "FP32")
        tensor.set_data_from_numpy(np.array([[1, 2]], np.float32))
        with grpc_client.InferenceServerClient(self._grpc) as client:
            self._repeat("grpc", lambda: _assert_answer(client.infer("double", [tensor], client_timeout=_TIMEOUT_S)))


def _assert_answer(answer: grpc_client.InferResult) -> None:
    assert answer.as_numpy("Y").tolist() == [[2, 4]]


if __name__ == "__main__":
    sys.exit(_Work(*sys.argv[1:]).run())
