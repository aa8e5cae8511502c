"""`alipes perf_analyzer` whose model is unloaded, whose server stands still, dies or talks nonsense, or that is ended.

Whatever happens, it says so in a few lines, ends with perf_analyzer's status, and leaves no shared memory behind.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from alipes import Client
from support.command import Done, alipes_process
from support.models import add_model
from support.perf_models import identity
from support.python_models import add_python_model
from support.regions import ALLOWED, mapped_regions
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

pytestmark = pytest.mark.slow("each test runs the command as a process")

Serve = Callable[..., ServerProcess]

SHM = Path("/dev/shm")
IDENTITY = """
backend: "onnxruntime"
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
SEQUENCE = """
max_batch_size: 4
sequence_batching { direct { } control_input [
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] }
] }
"""
# So long that no level settles.
ENDLESS = ("-p", "300", "-r", "100000", "-s", "0.0001")
# Requests that take longer than a window.
ENOUGH = 3000
WAYS = {
    "http": ("identity", "http", ("--shape", "INPUT0:4")),
    "grpc": ("identity", "grpc", ("--shape", "INPUT0:4", "--concurrency-range", "3")),
    "stream": ("identity", "grpc", ("--shape", "INPUT0:4", "--streaming")),
    "sequence": ("counted", "grpc", ("--concurrency-range", "2")),
    "shared memory": ("identity", "http", ("--shape", "INPUT0:4", "--shared-memory", "system")),
}
SHARED = "shared memory"
# Every way meets one of the faults in the gate, and all of them in the proof.
QUICK = {"grpc", SHARED}
SOME_WAYS = [pytest.param(way, marks=[] if way in QUICK else pytest.mark.proof) for way in WAYS]


@pytest.fixture
def server(tmp_path: Path, serve: Serve) -> ServerProcess:
    add_model(tmp_path / "models", "identity", identity(), config=IDENTITY)
    add_python_model(tmp_path / "models", "counted", signature="X: INT32[1] -> Y: INT32[1]", config=SEQUENCE)
    flags = ("--model-control-mode=explicit", "--load-model=*", ALLOWED)
    return serve(tmp_path / "models", *flags)


class Analyzer:
    """The command as a process, on its way."""

    def __init__(self, server: ServerProcess, way: str) -> None:
        model, wire, words = WAYS[way]
        address = getattr(server, wire)
        command = [sys.executable, "-m", "alipes", "perf_analyzer", "-m", model, "-i", wire, "-u", address]
        self.model = model
        self.process = subprocess.Popen(
            [*command, *words, *ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def end(self) -> Done:
        """What it printed, once it has ended."""
        out, err = self.process.communicate(timeout=TIMEOUT_S)
        assert "Traceback" not in err
        assert not list(SHM.glob(f"alipes-{self.process.pid}-*")), "shared memory is left"
        return Done(self.process.returncode, out, err)


@contextmanager
def measuring(server: ServerProcess, way: str) -> Iterator[Analyzer]:
    """A run that has measured something: a whole window at least, even of a quick server."""
    tester = Analyzer(server, way)
    try:
        with Client(server.http) as client:
            until(lambda: client.statistics(tester.model)[0]["inference_stats"]["success"]["count"] > ENOUGH)
        yield tester
    finally:
        tester.process.kill()
        tester.process.communicate()


@pytest.mark.parametrize("way", WAYS)
def test_an_unloaded_model_ends_every_kind_of_run(server: ServerProcess, way: str) -> None:
    with measuring(server, way) as tester, Client(server.http) as client:
        client.unload(tester.model)
        done = tester.end()
    assert done.code == 99
    assert f"'{tester.model}'" in done.err
    assert "    Request count: " in done.out
    assert len(done.err.splitlines()) <= 4


@pytest.mark.parametrize("way", SOME_WAYS)
def test_a_killed_server_ends_every_kind_of_run(server: ServerProcess, way: str) -> None:
    with measuring(server, way) as tester:
        server.kill()
        done = tester.end()
    assert done.code == 99
    assert "Thread [0] had error: " in done.err
    assert "    Request count: " in done.out
    assert len(done.err.splitlines()) <= 4


@pytest.mark.parametrize("way", ["http", SHARED])
def test_a_server_that_stands_still_ends_the_run(server: ServerProcess, way: str) -> None:
    with measuring(server, way) as tester:
        server.signal(signal.SIGSTOP)
        done = tester.end()
    assert done.code == 3
    assert done.err == "No valid requests recorded within time interval. Please use a larger time window.\n"


def test_a_server_that_goes_on_is_measured_on(server: ServerProcess) -> None:
    with measuring(server, "grpc") as tester, Client(server.http) as client:
        server.signal(signal.SIGSTOP)
        server.signal(signal.SIGCONT)
        counted = client.statistics("identity")[0]["inference_stats"]["success"]["count"]
        until(lambda: client.statistics("identity")[0]["inference_stats"]["success"]["count"] > counted + ENOUGH)
        tester.process.send_signal(signal.SIGINT)
        done = tester.end()
    assert (done.code, done.err) == (0, "Interrupt signal (2) received: what was measured until then is above.\n")
    assert "    Request count: " in done.out


@pytest.mark.parametrize("way", SOME_WAYS)
def test_an_interrupt_leaves_what_every_kind_of_run_showed(server: ServerProcess, way: str) -> None:
    with measuring(server, way) as tester:
        tester.process.send_signal(signal.SIGINT)
        done = tester.end()
    assert (done.code, done.err) == (0, "Interrupt signal (2) received: what was measured until then is above.\n")
    assert "    Request count: " in done.out


def test_an_interrupt_ends_a_run_whose_server_stands_still(server: ServerProcess) -> None:
    with measuring(server, SHARED) as tester:
        assert mapped_regions(tester.process.pid)
        server.signal(signal.SIGSTOP)
        tester.process.send_signal(signal.SIGINT)
        done = tester.end()
    assert (done.code, done.err) == (0, "Interrupt signal (2) received: what was measured until then is above.\n")


def test_a_run_that_is_ended_by_a_signal_leaves_no_memory(server: ServerProcess) -> None:
    with measuring(server, SHARED) as tester:
        tester.process.send_signal(signal.SIGTERM)
        done = tester.end()
    assert (done.code, done.err) == (128 + signal.SIGTERM, "")


@pytest.mark.parametrize("words", [("--shape", "INPUT0:2,2"), ()])
def test_wrong_shapes_are_named(server: ServerProcess, words: tuple[str, ...]) -> None:
    done = alipes_process("perf_analyzer", "-m", "identity", "-u", server.http, *words, "--request-count", "5")
    assert done.code == 99
    assert "INPUT0" in done.err
    assert "Traceback" not in done.err


@pytest.fixture
def nonsense() -> Iterator[Callable[[bytes], str]]:
    """A server that says the same to everybody: what it says, and its address."""
    listeners = []

    def serve(words: bytes) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def talk() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.settimeout(TIMEOUT_S)
                    try:
                        connection.recv(1 << 16)
                        connection.sendall(words)
                    except OSError:
                        continue

        threading.Thread(target=talk, daemon=True).start()
        return f"127.0.0.1:{listener.getsockname()[1]}"

    yield serve
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


NONSENSE = {
    "bytes": b"\x00\xff\x01 nonsense\r\n\r\n",
    "zeros": b"\x00" * 100,
    "a list": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[1, 2, 3]",
    "another document": b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"inputs": [4]}',
    "no name": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
}


# Over gRPC none of it is read as an answer, whatever it is.
@pytest.mark.parametrize(
    ("wire", "said"),
    [
        pytest.param(wire, said, marks=pytest.mark.proof if wire == "grpc" and said != "bytes" else ())
        for wire in ("http", "grpc")
        for said in NONSENSE
    ],
)
def test_a_server_that_talks_nonsense_is_a_few_lines(nonsense: Callable[[bytes], str], wire: str, said: str) -> None:
    address = nonsense(NONSENSE[said])
    ours = alipes_process("loadtest", "m", f"--url={wire}://{address}")
    assert (ours.code, ours.out) == (1, "")
    theirs = alipes_process("perf_analyzer", "-m", "m", "-i", wire, "-u", address)
    assert theirs.code == 99
    for done in (ours, theirs):
        assert 0 < len(done.err.splitlines()) <= 5, done.err
        assert "Traceback" not in done.err
