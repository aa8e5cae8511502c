"""A worker that takes no requests keeps none: others answer, and in the end it is started again."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from support.endpoints import Endpoint, Reply
from support.processes import is_gone, workers_of
from support.python_models import add_python_model, instances
from support.server import ServerProcess
from support.waiting import until

Start = Callable[..., ServerProcess]
AskLater = Callable[..., Future[Reply]]

SIGNATURE = "HOW: BYTES[1] -> PID: INT64[1]"

# Answers the process id; `closes` closes every descriptor first, and opens files in their place.
MODEL = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            if word(request) == "closes":
                os.closerange(3, 65536)
                folder = os.environ["ALIPES_TEST_FILES"]
                self.files = [open(f"{folder}/{number}", "w") for number in range(16)]
        return [answer(PID=np.array([os.getpid()], np.int64)) for _ in requests]
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    return folder


@pytest.fixture
def server(repository: Path, files: Path, start: Start) -> ServerProcess:
    add_python_model(repository, "pair", MODEL, signature=SIGNATURE, config=instances(2))
    add_python_model(repository, "single", MODEL, signature=SIGNATURE)
    return start("--disable-auto-complete-config", environment={"ALIPES_TEST_FILES": str(files)})


def pid_of(endpoint: Endpoint, model: str) -> int:
    return int(endpoint.ask(model, {"HOW": ["live"]})["PID"][0])


@contextmanager
def clients(server: ServerProcess, endpoint: Endpoint, count: int) -> Iterator[list[Endpoint]]:
    """Further clients like this one, which each wait for one answer at a time."""
    with ExitStack() as stack:
        yield [stack.enter_context(type(endpoint)(server)) for _ in range(count)]


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_an_idle_worker_answers_for_one_that_is_stopped(server: ServerProcess, endpoint: Endpoint) -> None:
    # Requests that come one after the other go to the same worker.
    first = pid_of(endpoint, "pair")
    with stopped(first):
        others = {pid_of(endpoint, "pair") for _ in range(20)}
    assert len(others) == 1 and first not in others
    until(lambda: pid_of(endpoint, "pair") == first)
    assert "was ended" not in server.output


def test_requests_of_a_single_worker_wait_until_it_goes_on(
    server: ServerProcess, endpoint: Endpoint, ask_later: AskLater
) -> None:
    pid = pid_of(endpoint, "single")
    with clients(server, endpoint, 3) as others:
        with stopped(pid):
            later = [ask_later(other, "single", {"HOW": ["live"]}) for other in others]
            # The worker of another model is not concerned.
            assert pid_of(endpoint, "pair") != pid
            assert not any(future.done() for future in later)
        assert [int(future.result()["PID"][0]) for future in later] == [pid] * 3


def test_a_model_that_closes_what_it_did_not_open_is_started_again(
    server: ServerProcess, endpoint: Endpoint, files: Path
) -> None:
    first = pid_of(endpoint, "single")
    assert int(endpoint.ask("single", {"HOW": ["closes"]})["PID"][0]) == first
    # A worker misses its doorbell when it rings, and does not ring where the server is awake.
    until(lambda: pid_of(endpoint, "single") != first)
    assert is_gone(first)
    until(lambda: "the model has closed descriptors that it did not open" in server.output)
    assert endpoint.index("single")["state"] == "READY"
    # Nothing of the server's was written into files that got the numbers of its descriptors.
    assert [file.read_bytes() for file in sorted(files.iterdir())] == [b""] * 16


@pytest.mark.proof
def test_a_silent_worker_is_started_again_and_what_it_held_is_answered(
    server: ServerProcess, endpoint: Endpoint, ask_later: AskLater
) -> None:
    first = pid_of(endpoint, "single")
    os.kill(first, signal.SIGSTOP)
    with clients(server, endpoint, 3) as others:
        later = [ask_later(other, "single", {"HOW": ["live"]}) for other in others]
        second = {int(future.result()["PID"][0]) for future in later}
    assert len(second) == 1 and first not in second
    assert is_gone(first) and first not in {worker.pid for worker in workers_of(server)}
    until(lambda: "took no request for 30 s while it executed none" in server.output)
