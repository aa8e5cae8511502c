"""However a server ends, its workers end with it, and nothing of them is left."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import psutil
import pytest
from support.endpoints import ENDPOINTS, Refusal, Reply
from support.notes import Notes
from support.processes import assert_none_stays, descriptors, is_gone, memory_files, shared_memory_files, workers_of
from support.python_models import ECHO, add_python_model, instances
from support.server import ServerProcess
from support.waiting import until

Start = Callable[..., ServerProcess]
AskLater = Callable[..., Future[Reply]]

HELD = """
class TritonPythonModel:
    def execute(self, requests):
        note("begun")
        await_note("go")
        return [answer(Y=given(request)) for request in requests]

    def finalize(self):
        note("finalized")
"""

# Starts programs and a child of its own, each of which outlives the test's look at them.
PARENT = """
class TritonPythonModel:
    def initialize(self, args):
        self.program = subprocess.Popen(["sleep", "600"], close_fds=False)
        self.fork = os.fork()
        if self.fork == 0:
            note("forked")
            time.sleep(600)
            os._exit(0)
        await_note("forked")

    def execute(self, requests):
        return [answer(Y=np.array([self.program.pid, self.fork], np.int32)) for _ in requests]

    def finalize(self):
        self.program.kill()
        os.kill(self.fork, signal.SIGKILL)
"""


def test_nothing_is_left_of_a_server_that_is_killed(
    repository: Path, start: Start, notes: Notes, ask_later: AskLater
) -> None:
    add_python_model(repository, "held", HELD)
    add_python_model(repository, "echo", ECHO, config=instances(2))
    before = shared_memory_files()
    server = start()
    workers = [process.pid for process in workers_of(server)]
    assert len(workers) == 3
    assert all(memory_files(pid) for pid in workers)
    with ENDPOINTS["http"](server) as endpoint:
        pending = ask_later(endpoint, "held", {"X": [1]})
        notes.read("begun")
        server.process.kill()
        for pid in workers:
            until(lambda pid=pid: is_gone(pid))
        with pytest.raises(OSError):
            pending.result()
    assert_none_stays(before)


def test_a_busy_worker_ends_with_its_server_too(
    repository: Path, start: Start, notes: Notes, ask_later: AskLater
) -> None:
    source = """
    class TritonPythonModel:
        def execute(self, requests):
            note("begun")
            while True:
                pass
    """
    add_python_model(repository, "busy", source)
    server = start()
    (worker,) = workers_of(server)
    with ENDPOINTS["http"](server) as endpoint:
        pending = ask_later(endpoint, "busy", {"X": [1]})
        notes.read("begun")
        server.process.kill()
        until(lambda: is_gone(worker.pid))
        with pytest.raises(OSError):
            pending.result()


# The signal, the process that gets it, and the endpoint of the request.
SIGNALS = [
    (signal.SIGTERM, "server", "http"),
    (signal.SIGTERM, "group", "grpc"),
    (signal.SIGINT, "server", "grpc"),
    (signal.SIGINT, "group", "http"),
]


@pytest.mark.parametrize("case", SIGNALS, ids=lambda case: "-".join(str(part) for part in case))
def test_a_signal_lets_the_request_end_that_runs(
    repository: Path, start: Start, notes: Notes, ask_later: AskLater, case: tuple[signal.Signals, str, str]
) -> None:
    number, whom, protocol = case
    add_python_model(repository, "held", HELD)
    server = start()
    (worker,) = workers_of(server)
    with ENDPOINTS[protocol](server) as endpoint:
        pending = ask_later(endpoint, "held", {"X": [7]})
        notes.read("begun")
        if whom == "group":  # as a terminal does, and as some service managers do
            os.killpg(server.process.pid, number)
        else:
            server.signal(number)
        server.wait_for_output("Waiting for in-flight requests to complete")
        assert not is_gone(worker.pid)
        notes.write("go")
        assert pending.result()["Y"].tolist() == [7]
    assert server.wait() == 0
    notes.read("finalized")
    assert is_gone(worker.pid)
    assert "KeyboardInterrupt" not in server.output
    assert "Traceback" not in server.output


def test_a_request_that_never_ends_does_not_outlast_the_exit_time_out(
    repository: Path, start: Start, notes: Notes, ask_later: AskLater
) -> None:
    add_python_model(repository, "held", HELD)
    server = start("--exit-timeout-secs=1")
    (worker,) = workers_of(server)
    with ENDPOINTS["http"](server) as endpoint:
        pending = ask_later(endpoint, "held", {"X": [7]})
        notes.read("begun")
        server.signal()
        assert server.wait() == 1
        until(lambda: is_gone(worker.pid))
        with pytest.raises((OSError, Refusal)):
            pending.result()


def test_programs_that_a_model_starts_hold_nothing_of_the_link(repository: Path, start: Start) -> None:
    add_python_model(repository, "parent", PARENT)
    server = start("--model-control-mode=explicit", "--load-model=parent")
    (worker,) = workers_of(server)
    with ENDPOINTS["http"](server) as endpoint:
        program, fork = (int(pid) for pid in endpoint.ask("parent", {"X": [1]})["Y"])
        assert memory_files(worker.pid)
        for child in (program, fork):
            descriptors_left = [what for what in descriptors(child).values() if "memfd" in what or "eventfd" in what]
            assert descriptors_left == []
        assert memory_files(program) == []
        # They can be stopped like any other program, though their parent leaves signals to the server.
        for child in (program, fork):
            os.kill(child, signal.SIGTERM)
            until(lambda child=child: is_gone(child))
        assert endpoint.ask("parent", {"X": [1]})["Y"].tolist() == [program, fork]
        endpoint.unload("parent")
        until(lambda: is_gone(worker.pid))


def test_a_worker_keeps_no_descriptor_of_the_server(repository: Path, start: Start) -> None:
    add_python_model(repository, "echo", config=instances(2))
    server = start()
    with ENDPOINTS["http"](server) as endpoint:
        endpoint.ask("echo", {"X": [1]})
        for worker in workers_of(server):
            sockets = [what for what in descriptors(worker.pid).values() if what.startswith("socket:")]
            assert sockets == []
            files = [what for what in descriptors(worker.pid).values() if "memfd" in what]
            assert len(files) <= 2  # its link and the requests; not those of the other instance


@pytest.mark.slow("many loads of processes")
def test_processes_descriptors_and_memory_stay_level_over_many_loads(repository: Path, start: Start) -> None:
    add_python_model(repository, "echo", config=instances(2))
    server = start("--model-control-mode=explicit")
    process = psutil.Process(server.process.pid)

    def round_trip() -> None:
        with ENDPOINTS["http"](server) as endpoint:
            endpoint.load("echo")
            for _ in range(3):
                endpoint.ask("echo", {"X": list(range(100_000))})
            endpoint.unload("echo")
        until(lambda: not process.children())

    round_trip()
    until(lambda: not memory_files(server.process.pid))
    level = process.num_fds()
    for _ in range(4):
        round_trip()
    until(lambda: not memory_files(server.process.pid), "the memory of unloaded models is kept")
    until(lambda: process.num_fds() <= level, "descriptors of unloaded models are kept")
