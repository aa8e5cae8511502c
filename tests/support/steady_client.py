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
from dataclasses import astuple, dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import numpy as np
import tritonclient.grpc as grpc_client

BODY: Final = json.dumps({"inputs": [{"name": "X", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]})
INFER: Final = "/v2/models/double/infer"
WIRES: Final = ("http", "grpc")

# A time in which this process was not scheduled for longer than this does not count: it is not the server's.
_STANDSTILL_S: Final = 0.1

# A pause between two requests: the client asks often, and leaves the machine to the others.
_PAUSE_S: Final = 0.002
_TIMEOUT_S: Final = 60.0
# Of a forgiving client, for whom an answer after this time is none.
_SHORT_TIMEOUT_S: Final = 5.0
_LONGEST_REASON: Final = 80

# A gRPC client that lost its server asks for it again as soon as that, at the latest.
_RECONNECT: Final = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 500)]

# Latencies below this are noise: an attacker takes a core and the server another, so on a machine of two cores, where
# other tests run as well, server and client wait for some dozen time slices of several milliseconds each. An attack
# that works takes seconds.
NOISE_S: Final = 1.0


@dataclass(frozen=True)
class Sample:
    """A request that is over.

    Attributes:
        wire: One of `WIRES`.
        due_s: When it was to be sent, on the machine's monotonic clock. At a pace, a request that waits for the one
            before it was due before it is sent.
        latency_s: From then until its answer, or until it failed.
        failure: Why it was not answered well, for a forgiving client; else empty.
    """

    wire: str
    due_s: float
    latency_s: float
    failure: str = ""


class SteadyClient:
    """Asks the model `double` over HTTP and gRPC, each over one connection, for as long as the context lasts."""

    def __init__(
        self, http_address: str, grpc_address: str, pace_per_s: float | None = None, *, forgiving: bool = False
    ) -> None:
        """Starts the process, which connects with its first request.

        Args:
            http_address: Of the server, ``host:port``.
            grpc_address: The same.
            pace_per_s: Requests a second, over each wire; without it each follows the answer to the one before it.
            forgiving: Whether a request that fails, or gets no answer in five seconds, is a sample like any other.
        """
        choices = json.dumps([http_address, grpc_address, pace_per_s, forgiving])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.steady_client", choices],
            cwd=Path(__file__).parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # A Ctrl-C of the person at the keyboard is not its own. And Linux shares the cores out by session
            # (sched(7), autogroup): with the attackers in one session it would wait for their turns and not for the
            # server's, up to half a second.
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()
        if error is None:
            assert self._process.returncode == 0, "the steady client got a wrong answer, see its output"

    def samples(self, at_least: int) -> list[Sample]:
        """The requests since the last call that are over, once there are at least this many.

        Raises:
            AssertionError: If an answer was wrong, or there are fewer after a minute.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(at_least, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        assert answer, "the steady client got a wrong answer, see its output"
        return [Sample(*fields) for fields in json.loads(answer)]

    def latencies_s(self, at_least: int) -> list[float]:
        """Their latencies, in seconds."""
        return [sample.latency_s for sample in self.samples(at_least)]

    def latencies_by_protocol_s(self, at_least: int) -> dict[str, list[float]]:
        """The same for `http` and `grpc` each; at least this many are those of both together."""
        samples = self.samples(at_least)
        return {wire: [sample.latency_s for sample in samples if sample.wire == wire] for wire in WIRES}


def p99_s(latencies_s: list[float]) -> float:
    """The latency that one request in a hundred exceeds, in seconds."""
    return float(np.quantile(latencies_s, 0.99))


class _Work:
    """The work of the process."""

    def __init__(self, http_address: str, grpc_address: str, pace_per_s: float | None, forgiving: bool) -> None:
        self._http, self._grpc = http_address, grpc_address
        self._pace_per_s, self._forgiving = pace_per_s, forgiving
        self._timeout_s = _SHORT_TIMEOUT_S if forgiving else _TIMEOUT_S
        self._stop = threading.Event()
        self._changed = threading.Condition()
        self._samples: list[Sample] = []
        self._errors: list[Exception] = []
        self._looked_s = time.monotonic()
        self._standstills_s: list[tuple[float, float]] = []

    def run(self) -> int:
        """Prints the samples once for each line of its input, and ends with the input."""
        works = (self._over_http, self._over_grpc, self._look)
        threads = [threading.Thread(target=self._run, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        for line in sys.stdin:
            if (samples := self._take(int(line))) is None:
                break
            print(json.dumps([astuple(sample) for sample in samples]), flush=True)
        self._stop.set()
        for thread in threads:
            thread.join()
        for error in self._errors:
            print(repr(error), file=sys.stderr)
        return 1 if self._errors else 0

    def _take(self, at_least: int) -> list[Sample] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._errors or len(self._samples) >= at_least, _TIMEOUT_S)
            if self._errors or len(self._samples) < at_least:
                return None
            samples, self._samples = self._samples, []
        return samples

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            with self._changed:
                self._errors.append(error)
                self._changed.notify_all()

    def _repeat(self, wire: str, ask: Callable[[], None]) -> None:
        due_s = time.monotonic()
        while not self._stop.is_set():
            overdue = self._forgiving and time.monotonic() - due_s > self._timeout_s
            failure = "there was no answer to those before it" if overdue else self._attempt(ask)
            spent_s = time.monotonic() - due_s
            if spent_s > _STANDSTILL_S:
                # It may have stood still once more since the answer came.
                spent_s = max(0.0, spent_s - self._stood_since_s(due_s))
            with self._changed:
                self._samples.append(Sample(wire, due_s, spent_s, failure))
                self._changed.notify_all()
            due_s = self._await_next(due_s)

    def _attempt(self, ask: Callable[[], None]) -> str:
        """Why a request failed, where that is forgiven."""
        try:
            ask()
        except Exception as error:
            if not self._forgiving:
                raise
            return f"{type(error).__name__}: {error}"[:_LONGEST_REASON]
        return ""

    def _await_next(self, due_s: float) -> float:
        """When the next request was due, once it is."""
        if self._pace_per_s is None:
            self._stop.wait(_PAUSE_S)
            return time.monotonic()
        next_s = due_s + 1 / self._pace_per_s
        self._stop.wait(max(0.0, next_s - time.monotonic()))
        return next_s

    def _stood_since_s(self, since_s: float) -> float:
        """How long this process has stood still; a look that is overdue would tell of one more standstill."""
        with self._changed:
            self._changed.wait_for(
                lambda: time.monotonic() - self._looked_s <= _STANDSTILL_S or self._stop.is_set(), _TIMEOUT_S
            )
            return sum(max(0.0, end_s - max(begin_s, since_s)) for begin_s, end_s in self._standstills_s)

    def _look(self) -> None:
        """Notes when this process stands still."""
        while not self._stop.wait(_PAUSE_S):
            with self._changed:
                now_s = time.monotonic()
                if now_s - self._looked_s > _STANDSTILL_S:
                    self._standstills_s.append((self._looked_s, now_s))
                self._looked_s = now_s
                self._changed.notify_all()

    def _over_http(self) -> None:
        connection = http.client.HTTPConnection(self._http, timeout=self._timeout_s)

        def ask() -> None:
            try:
                connection.request("POST", INFER, BODY)
                answer = connection.getresponse()
                text = answer.read()
            except Exception:
                connection.close()  # the next request connects again
                raise
            assert answer.status == 200, text
            assert json.loads(text)["outputs"][0]["data"] == [2, 4], text

        try:
            self._repeat("http", ask)
        finally:
            connection.close()

    def _over_grpc(self) -> None:
        tensor = grpc_client.InferInput("X", [1, 2], "FP32")
        tensor.set_data_from_numpy(np.array([[1, 2]], np.float32))
        options = _RECONNECT if self._forgiving else None
        with grpc_client.InferenceServerClient(self._grpc, channel_args=options) as client:
            self._repeat(
                "grpc", lambda: _assert_answer(client.infer("double", [tensor], client_timeout=self._timeout_s))
            )


def _assert_answer(answer: grpc_client.InferResult) -> None:
    assert answer.as_numpy("Y").tolist() == [[2, 4]]


if __name__ == "__main__":
    sys.exit(_Work(*json.loads(sys.argv[1])).run())
